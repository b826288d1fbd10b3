// The machines of a rank that joins and of two members, explored exhaustively: every order in which their messages can
// arrive and in which steps are committed, with every single fault.
#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/state_note.hpp>
#include <rill/protocol/detail/state_transfer_machine.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::buffer;
using rill::rank_t;
using rill::detail::state_fetcher;
using rill::detail::state_letter;
using rill::detail::state_note;
using rill::detail::state_provider;
using task = state_fetcher::task;

namespace {

constexpr std::uint64_t build = 5, life = 77, last_step = 3;
constexpr rank_t joiner = 2;

buffer bytes_of(std::uint64_t value) {
    buffer bytes(8);
    std::memcpy(bytes.data(), &value, 8);
    return bytes;
}
std::uint64_t value_of(rill::byte_view bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min<std::size_t>(8, bytes.size()));
    return value;
}
std::uint64_t update_of(std::uint64_t step) { return rill::mix64(100, step); }
std::uint64_t applied(std::uint64_t state, std::uint64_t update) { return rill::mix64(state, update); }
std::uint64_t state_at(std::uint64_t step) {
    std::uint64_t state = 1;
    for (std::uint64_t i = 1; i <= step; ++i) state = applied(state, update_of(i));
    return state;
}

/// At most one, at any point: a member ends, it hears and says nothing more, a message is lost, a byte of a piece
/// changes, a wait is too short.
enum class fault : unsigned char { none, dead, silent, lost, changed, slow };

struct sent {
    state_note note{};
    buffer bytes{};
    bool is_end = false;  ///< of its sender
};

struct member {
    state_provider machine;
    std::uint64_t step = 0;
    bool is_dead = false, is_silent = false;
};

struct world {
    std::vector<member> members;
    state_fetcher fetcher;
    std::uint64_t state = 0;  ///< the joiner's
    std::array<std::vector<sent>, 2> to_member{}, to_joiner{};
    rill::time_point now{};
    int ticks = 0;
    int loads = 0;  ///< of snapshots
    bool is_struck = false;
    bool has_failed = false;
};

class explorer {
  public:
    explorer(rill::detail::state_transfer_options options, std::optional<std::uint64_t> have, fault only)
        : options_(options), have_(have), fault_(only) {}

    std::string run() {
        world first{.members = {},
                    .fetcher = state_fetcher(options_, life, 0, {0, 1}, have_),
                    .state = have_ ? state_at(*have_) : 0};
        for (int i = 0; i < 2; ++i) {
            first.members.push_back({.machine = state_provider(options_)});
            first.members.back().machine.members_are({.epoch = 3, .members = {0, 1}});
        }
        first.fetcher.begin(first.now);
        post(first);
        explore(first);
        return wrong_;
    }
    std::size_t ends() const { return ends_; }

  private:
    void require(bool holds, const char* what) {
        if (!holds && wrong_.empty()) wrong_ = what;
    }
    bool may_strike(const world& at, fault f) const { return fault_ == f && !at.is_struck; }

    static std::uint64_t hash(const world& at) {
        std::uint64_t h = 0;
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        at.fetcher.visit_state(mix);
        for (const member& each : at.members) {
            each.machine.visit_state(mix);
            mix(each.step), mix(each.is_dead), mix(each.is_silent);
        }
        mix(at.state), mix(at.ticks), mix(at.loads), mix(at.is_struck);
        for (const auto* links : {&at.to_member, &at.to_joiner})
            for (const auto& link : *links) {
                mix(link.size());
                for (const sent& each : link) {
                    mix(each.note.kind), mix(each.note.of), mix(each.note.reason), mix(each.note.step);
                    mix(each.note.offset), mix(each.note.length), mix(each.note.latest), mix(each.is_end);
                    mix(rill::checksum(each.bytes));
                }
            }
        return h;
    }

    /// Puts what machines want to send on its way.
    void post(world& at) {
        for (const state_letter& each : at.fetcher.letters())
            at.to_member[static_cast<std::size_t>(each.to)].push_back({each.note});
        at.fetcher.clear_letters();
        for (std::size_t i = 0; i < 2; ++i) {
            for (const state_letter& each : at.members[i].machine.letters()) {
                require(each.to == joiner, "a letter to somebody else");
                at.to_joiner[i].push_back({each.note, buffer(each.bytes.begin(), each.bytes.end())});
            }
            at.members[i].machine.clear_letters();
        }
    }

    /// Does what the joiner's machine asks for, and goes on.
    void obey(world at, task asked) {
        if (asked == task::replace) {
            at.state = value_of(at.fetcher.item());
            require(++at.loads <= 3, "it loads snapshots again and again");
            require(at.state == state_at(at.fetcher.step()), "another state than that of the step");
        }
        if (asked == task::apply) {
            require(at.fetcher.step() == *at.fetcher.have() + 1, "an update out of order");
            at.state = applied(at.state, value_of(at.fetcher.item()));
            require(at.state == state_at(at.fetcher.step()), "another state after an update");
        }
        if (asked == task::replace || asked == task::apply) {
            require(at.fetcher.done(at.now) == task::nothing, "done leads on");
        }
        if (asked == task::fail) at.has_failed = true;
        post(at);
        explore(std::move(at));
    }

    void explore(world at) {
        if (!wrong_.empty() || !seen_.insert(hash(at)).second) return;
        bool can_act = false;
        for (std::size_t i = 0; i < 2; ++i) {
            if (!at.to_joiner[i].empty() && !at.has_failed) can_act = true, hear(at, i);
            if (!at.to_member[i].empty()) can_act = true, serve(at, i);
            if (may_commit(at, i)) can_act = true, commit(at, i);
            if (may_strike(at, fault::dead)) die(at, i);
            if (may_strike(at, fault::silent)) {
                world next = at;
                next.is_struck = next.members[i].is_silent = true;
                next.to_joiner[i].clear();
                explore(std::move(next));
            }
        }
        const bool has_all = at.fetcher.have() == last_step && at.fetcher.is_ready();
        if (may_strike(at, fault::slow) && !has_all && at.ticks < 12) {
            world next = at;
            next.is_struck = true;
            tick(std::move(next));
        }
        if (can_act) return;
        require(!at.has_failed, "the joiner gives up though a member lives");
        if (has_all || at.has_failed) {
            ++ends_;
            return;
        }
        require(at.ticks < 12, "it hangs");
        tick(std::move(at));
    }

    void tick(world at) {
        ++at.ticks;
        at.now = at.fetcher.until();
        const task asked = at.fetcher.tick(at.now);
        obey(std::move(at), asked);
    }
    static bool may_commit(const world& at, std::size_t i) {
        const member &own = at.members[i], &other = at.members[1 - i];
        return !own.is_dead && own.step < last_step && (other.is_dead || own.step <= other.step);
    }
    void commit(world at, std::size_t i) {
        member& own = at.members[i];
        ++own.step;
        own.machine.committed(own.step, bytes_of(update_of(own.step)));
        if (own.machine.is_snapshot_due()) own.machine.take_snapshot(own.step, bytes_of(state_at(own.step)));
        if (own.is_silent) own.machine.clear_letters();
        post(at);
        explore(std::move(at));
    }
    void die(world at, std::size_t i) {
        at.is_struck = at.members[i].is_dead = true;
        at.to_member[i].clear();
        at.to_joiner[i].push_back({.is_end = true});
        explore(std::move(at));
    }
    void serve(world at, std::size_t i) {
        const sent got = at.to_member[i].front();
        at.to_member[i].erase(at.to_member[i].begin());
        if (at.members[i].is_dead || at.members[i].is_silent) return explore(std::move(at));
        if (may_strike(at, fault::lost)) {
            world next = at;
            next.is_struck = true;
            explore(std::move(next));
        }
        member& own = at.members[i];
        own.machine.on(joiner, got.note, life);
        // Who trains no more is between two steps.
        if (own.step == last_step && own.machine.is_snapshot_due())
            own.machine.take_snapshot(own.step, bytes_of(state_at(own.step)));
        post(at);
        explore(std::move(at));
    }
    void hear(world at, std::size_t i) {
        const sent got = at.to_joiner[i].front();
        at.to_joiner[i].erase(at.to_joiner[i].begin());
        const auto from = static_cast<rank_t>(i);
        if (got.is_end) {
            const task asked = at.fetcher.lost(from, at.now);
            return obey(std::move(at), asked);
        }
        if (may_strike(at, fault::lost)) {
            world next = at;
            next.is_struck = true;
            explore(std::move(next));
        }
        if (may_strike(at, fault::changed) && !got.bytes.empty()) {
            world next = at;
            next.is_struck = true;
            buffer changed = got.bytes;
            changed[0] ^= std::byte{1};
            const task asked = next.fetcher.on(from, got.note, changed, next.now);
            obey(std::move(next), asked);
        }
        const task asked = at.fetcher.on(from, got.note, got.bytes, at.now);
        obey(std::move(at), asked);
    }

    rill::detail::state_transfer_options options_;
    std::optional<std::uint64_t> have_;
    fault fault_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0;
    std::string wrong_;
};

constexpr rill::detail::state_transfer_options small{
    .build = build, .catch_up_bytes = 100, .snapshot_every = 1, .piece_bytes = 3, .window = 2};

}  // namespace

TEST_CASE("state transfer: in every order of events, with every fault, a joiner gets to the members' state") {
    for (const fault only : {fault::none, fault::dead, fault::silent, fault::lost, fault::changed, fault::slow})
        for (const std::size_t kept : {std::size_t{100}, std::size_t{8}})
            for (const std::optional<std::uint64_t> have : {std::optional<std::uint64_t>{}, {0}, {1}}) {
                CAPTURE(static_cast<int>(only));
                CAPTURE(kept);
                CAPTURE(have.value_or(99));
                rill::detail::state_transfer_options options = small;
                options.catch_up_bytes = kept;
                explorer all(options, have, only);
                CHECK(all.run() == "");
                CHECK(all.ends() > 0);
            }
}

namespace {

/// A member at step 4 of a view of epoch 3, which keeps the updates from step 2 on.
state_provider at_step_4(std::size_t kept = 24) {
    rill::detail::state_transfer_options options = small;
    options.catch_up_bytes = kept;
    state_provider made(options);
    made.members_are({.epoch = 3, .members = {0, 1, 2}, .incarnations = {10, 11, 12}});
    for (std::uint64_t step = 1; step <= 4; ++step) made.committed(step, bytes_of(update_of(step)));
    return made;
}

state_note::why refusal_of(state_provider& by, rank_t from, const state_note& note, std::uint64_t current) {
    by.clear_letters();
    by.on(from, note, current);
    REQUIRE(by.letters().size() == 1);
    return by.letters()[0].note.reason;
}

/// Hands all letters of the fetcher to one member, and its answers to the fetcher, until nothing more is sent, a
/// snapshot is there or `most` pieces have arrived. Applies updates to `state`.
task converse(state_fetcher& fetcher, state_provider& with, rank_t rank, std::size_t most = 1000,
              std::uint64_t* state = nullptr) {
    std::size_t heard = 0;
    while (!fetcher.letters().empty()) {
        const std::vector<state_letter> letters = fetcher.letters();
        fetcher.clear_letters();
        for (const state_letter& each : letters)
            if (each.to == rank) with.on(joiner, each.note, life);
        if (with.is_snapshot_due()) with.take_snapshot(4, bytes_of(state_at(4)));
        const std::vector<state_letter> answers = with.letters();
        with.clear_letters();
        for (const state_letter& each : answers) {
            const task asked = fetcher.on(rank, each.note, each.bytes, {});
            if (asked == task::replace) return asked;
            if (asked == task::apply) {
                *state = applied(*state, value_of(fetcher.item()));
                fetcher.done({});
            }
            if (each.note.kind == state_note::what::piece && ++heard == most) return task::nothing;
        }
    }
    return task::nothing;
}

}  // namespace

TEST_CASE("state transfer: a member refuses other builds, earlier lives, taken seats and what is not kept") {
    state_provider by = at_step_4();
    const state_note note{.of = state_note::item::update, .incarnation = life, .build = build, .step = 3, .length = 9};
    using why = state_note::why;
    CHECK(refusal_of(by, 5, {.of = note.of, .incarnation = life, .build = 6, .step = 3, .length = 9}, life) ==
          why::other_build);
    CHECK(refusal_of(by, 5, note, life + 1) == why::old_life);
    CHECK(refusal_of(by, 2, note, 12) == why::taken_seat);
    CHECK(refusal_of(by, 2, note, 13) == why::old_life);
    state_note other = note;
    other.epoch = 4;
    CHECK(refusal_of(by, 5, other, life) == why::old_epoch);
    other = note;
    other.step = 1;
    CHECK(refusal_of(by, 5, other, life) == why::not_kept);
    other.step = 5;
    CHECK(refusal_of(by, 5, other, life) == why::later);
    other.of = state_note::item::snapshot;
    CHECK(refusal_of(by, 5, other, life) == why::later);
    CHECK(by.is_snapshot_due());
    by.lost(5);
    CHECK(!by.is_snapshot_due());
}

TEST_CASE("state transfer: a joiner ends where it is refused for good") {
    for (const auto reason : {state_note::why::other_build, state_note::why::old_life, state_note::why::taken_seat}) {
        state_fetcher fetcher(small, life, 0, {0, 1}, std::nullopt);
        fetcher.begin({});
        const state_note refusal{
            .kind = state_note::what::refusal, .reason = reason, .epoch = 3, .incarnation = life, .build = build};
        CHECK(fetcher.on(1, refusal, {}, {}) == task::nothing);  // nobody has asked it
        CHECK(fetcher.on(0, refusal, {}, {}) == task::fail);
        CHECK(fetcher.reason() == reason);
        CHECK(fetcher.culprit() == 0);
    }
}

TEST_CASE("state transfer: notes of an older epoch and of another life count for nothing") {
    state_fetcher fetcher(small, life, 4, {0}, std::nullopt);
    fetcher.begin({});
    fetcher.clear_letters();
    const buffer state = bytes_of(state_at(4));
    state_note piece{.kind = state_note::what::piece,
                     .epoch = 3,
                     .incarnation = life,
                     .build = build,
                     .step = 4,
                     .checksum = rill::checksum(state),
                     .size = 8,
                     .length = 8,
                     .latest = 4};
    CHECK(fetcher.on(0, piece, state, {}) == task::nothing);
    piece.epoch = 4;
    piece.incarnation = life - 1;
    CHECK(fetcher.on(0, piece, state, {}) == task::nothing);
    piece.incarnation = life;
    CHECK(fetcher.on(0, piece, state, {}) == task::replace);
}

TEST_CASE("state transfer: the next member goes on at the first missing byte, or begins anew with another snapshot") {
    for (const bool is_same : {true, false}) {
        state_provider first = at_step_4(), second = at_step_4();
        state_fetcher fetcher(small, life, 0, {0, 1}, std::nullopt);
        fetcher.begin({});
        REQUIRE(fetcher.letters().size() == 2);  // the second member is told to keep a snapshot
        second.on(joiner, fetcher.letters()[0].note, life);
        if (!is_same) second.committed(5, bytes_of(update_of(5)));
        REQUIRE(second.is_snapshot_due());
        second.take_snapshot(is_same ? 4 : 5, bytes_of(state_at(is_same ? 4 : 5)));
        for (const state_letter& each : second.letters()) CHECK(each.note.kind == state_note::what::refusal);
        second.clear_letters();

        CHECK(converse(fetcher, first, 0, 1) == task::nothing);
        fetcher.clear_letters();
        CHECK(fetcher.lost(0, {}) == task::nothing);
        REQUIRE(fetcher.letters().size() == 1);
        CHECK(fetcher.letters()[0].note.offset == 3);
        second.on(joiner, fetcher.letters()[0].note, life);
        CHECK(second.letters()[0].note.offset == (is_same ? 3 : 0));
        second.clear_letters();
        CHECK(converse(fetcher, second, 1) == task::replace);
        CHECK(fetcher.step() == (is_same ? 4 : 5));
        CHECK(value_of(fetcher.item()) == state_at(fetcher.step()));
    }
}

TEST_CASE("state transfer: who missed few steps gets those only, in order") {
    state_provider by = at_step_4();
    state_fetcher fetcher(small, life, 0, {0}, 1);
    fetcher.begin({});
    std::uint64_t state = state_at(1);
    CHECK(!fetcher.is_ready());
    converse(fetcher, by, 0, 1, &state);
    CHECK(!fetcher.is_ready());
    CHECK(fetcher.tick(fetcher.until()) == task::nothing);  // what was under way is lost
    CHECK(converse(fetcher, by, 0, 1000, &state) == task::nothing);
    CHECK(state == state_at(4));
    CHECK(fetcher.is_ready());
    CHECK(!by.is_snapshot_due());
}

TEST_CASE("state transfer: a snapshot that nobody asks for goes with the next step") {
    for (const bool is_asked_for : {false, true}) {
        state_provider by = at_step_4();
        by.take_snapshot(4, bytes_of(state_at(4)));
        const state_note wanted{.incarnation = life, .build = build, .length = 9};
        if (is_asked_for) by.on(joiner, wanted, life);
        by.committed(5, bytes_of(update_of(5)));
        by.clear_letters();
        by.on(joiner, wanted, life);
        CHECK((by.letters()[0].note.kind == state_note::what::piece) == is_asked_for);
    }
}

TEST_CASE("state transfer: a copy of the state of another step is no snapshot") {
    state_provider by = at_step_4();
    const state_note wanted{.incarnation = life, .build = build, .length = 9};
    by.on(joiner, wanted, life);
    by.clear_letters();
    by.take_snapshot(3, bytes_of(state_at(3)));
    CHECK(by.is_snapshot_due());
    by.take_snapshot(4, bytes_of(state_at(4)));
    CHECK(!by.is_snapshot_due());
    REQUIRE(!by.letters().empty());
    CHECK(by.letters()[0].note.step == 4);
}

TEST_CASE("state transfer: a piece that comes twice is taken once") {
    state_fetcher fetcher(small, life, 0, {0}, std::nullopt);
    fetcher.begin({});
    const buffer state = bytes_of(state_at(4));
    state_note piece{.kind = state_note::what::piece,
                     .epoch = 3,
                     .incarnation = life,
                     .build = build,
                     .step = 4,
                     .checksum = rill::checksum(state),
                     .size = 8,
                     .length = 4,
                     .latest = 4};
    const rill::byte_view all(state);
    CHECK(fetcher.on(0, piece, all.first(4), {}) == task::nothing);
    CHECK(fetcher.on(0, piece, all.first(4), {}) == task::nothing);
    piece.offset = 4;
    CHECK(fetcher.on(0, piece, all.subspan(4), {}) == task::replace);
}

TEST_CASE("state transfer: without members that answer, it fails and names the last one") {
    state_fetcher fetcher(small, life, 0, {0, 1}, std::nullopt);
    fetcher.begin({});
    task asked = task::nothing;
    int waits = 0;
    while (asked == task::nothing && waits++ < 100) asked = fetcher.tick(fetcher.until());
    CHECK(asked == task::fail);
    CHECK(fetcher.reason() == state_note::why::none);
    CHECK(waits == 5);
    state_fetcher alone(small, life, 0, {}, std::nullopt);
    CHECK(alone.begin({}) == task::fail);
}

TEST_CASE("state transfer: messages read as they were written") {
    const buffer bytes = bytes_of(1);
    const state_note note{.kind = state_note::what::piece,
                          .of = state_note::item::update,
                          .epoch = 3,
                          .incarnation = life,
                          .build = build,
                          .step = 9,
                          .checksum = 8,
                          .size = 20,
                          .offset = 12,
                          .length = 8,
                          .latest = 11};
    const buffer message = to_message(note, bytes);
    const auto read = rill::detail::read_state_message(message);
    CHECK(read.note == note);
    CHECK(std::equal(bytes.begin(), bytes.end(), read.bytes.begin(), read.bytes.end()));
    const auto refuses = [](const buffer& changed) {
        CHECK_THROWS_AS(rill::detail::read_state_message(changed), rill::protocol_error);
    };
    refuses(buffer(message.begin(), message.end() - 1));
    refuses(buffer(message.begin(), message.begin() + 20));
    for (const std::size_t at : {0U, 4U, 5U, 6U, 7U, 12U, 48U}) {
        buffer changed = message;
        changed[at] = std::byte{9};
        refuses(changed);
    }
}
