#include <rill/core/contract.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using state = handshake::state;
using refusal = handshake::refusal;
using purpose = handshake::purpose;
using bytes = std::vector<std::byte>;

/// A digest that stands for a keyed one: good enough to tell other bytes and other keys apart.
handshake::proof digest(const void* key, byte_view of) {
    std::uint64_t sum = *static_cast<const std::uint64_t*>(key);
    for (const std::byte each : of) sum = (sum ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3;
    handshake::proof made{};
    for (std::size_t i = 0; i < made.size(); i += 8) put(made.data() + i, sum * (i + 1), 8);
    return made;
}
const std::uint64_t one_key = 1, other_key = 2;

handshake::identity identity_of(rank_t rank) {
    return {.why = purpose::mail,
            .job = 11,
            .build = 12,
            .ranks = 4,
            .rank = rank,
            .incarnation = 100 + static_cast<std::uint64_t>(rank),
            .attempt = 3};
}
handshake::nonce nonce_of(unsigned fill) {
    handshake::nonce made;
    made.fill(static_cast<std::byte>(fill));
    return made;
}

struct ends {
    handshake::identity a = identity_of(1), b = identity_of(2);
    dialer::expected expected{.rank = 2, .incarnation = 102};
    handshake::prover a_key{}, b_key{};
    refusal decision = refusal::none;
    bytes to_a{}, to_b{};  // all that was said
    state a_ends = state::needs_more, b_ends = state::needs_more;
    refusal a_why = refusal::none, b_why = refusal::none;
    std::uint64_t a_knows = 0, b_knows = 0;

    /// Carries what `from` says to `to` in pieces of `piece` bytes; byte `flip` of it is changed on the way.
    template <class From, class To>
    static bool carry(From& from, To& to, bytes& said, std::size_t piece, std::size_t flip) {
        bool moved = false;
        while (!from.outgoing().empty() && to.wanted() != 0) {
            const std::size_t count = std::min({piece, from.outgoing().size(), to.wanted()});
            bytes way(from.outgoing().begin(), from.outgoing().begin() + static_cast<std::ptrdiff_t>(count));
            from.wrote(count);
            if (flip - said.size() < count) way[flip - said.size()] ^= std::byte{1};
            said.insert(said.end(), way.begin(), way.end());
            to.arrived(way);
            moved = true;
        }
        return moved;
    }
    void run(std::size_t piece = 1000, std::size_t flip_to_a = SIZE_MAX / 2, std::size_t flip_to_b = SIZE_MAX / 2) {
        dialer d(a, expected, a_key, nonce_of(1));
        acceptor c(b, b_key, nonce_of(2));
        for (bool moved = true; moved;) {
            moved = carry(d, c, to_b, piece, flip_to_b);
            moved = carry(c, d, to_a, piece, flip_to_a) || moved;
            if (d.now() == state::asks) d.prove(77), moved = true;
            if (c.now() == state::asks) {
                CHECK(c.peer().rank == 1);
                CHECK(c.peer().incarnation == 101);
                CHECK(c.peer().attempt == 3);
                decision == refusal::none ? c.accept(88) : c.refuse(decision);
                moved = true;
            }
        }
        a_ends = d.now(), b_ends = c.now();
        a_why = d.why(), b_why = c.why();
        a_knows = d.peer_taken(), b_knows = c.peer_taken();
    }
    bool agree() const { return a_ends == state::agreed && b_ends == state::agreed; }
};

/// Both ends find this refusal.
template <class Change>
bool both_say(refusal reason, Change change) {
    ends made;
    change(made);
    made.run();
    return made.a_ends == state::refused && made.b_ends == state::refused && made.a_why == reason &&
           made.b_why == reason;
}

}  // namespace

TEST_CASE("a proof is right only where each of its bytes is") {
    const handshake::proof right = digest(&one_key, {});
    CHECK(equal_in_constant_time(right, right));
    for (std::size_t i = 0; i < right.size(); ++i)
        for (const std::byte bit : {std::byte{1}, std::byte{0x80}}) {
            handshake::proof wrong = right;
            wrong[i] ^= bit;
            CHECK_FALSE(equal_in_constant_time(right, wrong));
        }
    CHECK_FALSE(equal_in_constant_time(right, byte_view(right).first(31)));
    CHECK_FALSE(equal_in_constant_time(byte_view(right).first(31), right));
    CHECK_FALSE(equal_in_constant_time(right, {}));
}

TEST_CASE("two ranks of a job agree, in pieces of any size, with a key or without") {
    for (const bool has_key : {false, true})
        for (const std::size_t piece : {1U, 2U, 5U, 7U, 63U, 1000U}) {
            ends made;
            if (has_key) made.a_key = made.b_key = {&one_key, digest};
            made.run(piece);
            CHECK(made.agree());
            CHECK(made.a_knows == 88);
            CHECK(made.b_knows == 77);
            CHECK(made.to_b.size() == handshake::hello_bytes + handshake::proof_bytes);
            CHECK(made.to_a.size() == handshake::hello_bytes + handshake::answer_bytes);
        }
}

TEST_CASE("who meets knows nobody yet") {
    ends made;
    made.a.why = made.b.why = purpose::meeting;
    made.expected = {};
    made.run();
    CHECK(made.agree());
}

TEST_CASE("ends that do not fit find the same reason") {
    CHECK(both_say(refusal::security, [](ends& of) { of.a_key = {&one_key, digest}; }));
    CHECK(both_say(refusal::security, [](ends& of) { of.b_key = {&one_key, digest}; }));
    CHECK(both_say(refusal::job, [](ends& of) { of.a.job = 1; }));
    CHECK(both_say(refusal::build, [](ends& of) { of.a.build = 1; }));
    CHECK(both_say(refusal::ranks, [](ends& of) { of.a.ranks = 5; }));
    CHECK(both_say(refusal::rank, [](ends& of) { of.a.rank = 2; }));
    CHECK(both_say(refusal::purpose, [](ends& of) { of.a.why = purpose::meeting; }));
    CHECK(both_say(refusal::key, [](ends& of) {
        of.a_key = {&one_key, digest};
        of.b_key = {&other_key, digest};
    }));
    for (const refusal reason : {refusal::incarnation, refusal::stale, refusal::crossed, refusal::taken})
        CHECK(both_say(reason, [&](ends& of) { of.decision = reason; }));
}

TEST_CASE("mail is of one line; a process joins on any line, and others that join too") {
    const auto why = [](purpose a, purpose b) {
        ends made;
        made.a.why = a;
        made.b.why = b;
        made.b.line = 1;
        made.run();
        CHECK(made.a_why == made.b_why);
        return made.b_why;
    };
    CHECK(why(purpose::mail, purpose::mail) == refusal::purpose);
    CHECK(why(purpose::join, purpose::mail) == refusal::none);
    CHECK(why(purpose::mail, purpose::join) == refusal::none);
    CHECK(why(purpose::join, purpose::join) == refusal::none);
    CHECK(why(purpose::join, purpose::meeting) == refusal::purpose);
}

TEST_CASE("another rank, or another start of it, than was dialled is refused by the dialer") {
    ends other;
    other.expected.rank = 3;
    other.run();
    CHECK(other.a_ends == state::refused);
    CHECK(other.a_why == refusal::rank);
    CHECK(other.b_ends == state::needs_more);
    ends again;
    again.expected.incarnation = 7;
    again.run();
    CHECK(again.a_why == refusal::incarnation);
    CHECK(again.b_ends == state::needs_more);
}

TEST_CASE("a rank that the job has not is refused") {
    for (const rank_t rank : {rank_t{4}, no_rank}) {
        ends made;
        made.a.rank = rank;
        made.run();
        CHECK(made.b_why == refusal::rank);
        CHECK(made.a_why == refusal::rank);
    }
}

TEST_CASE("who has not the key cannot say that it is of another job") {
    ends made;
    made.a.job = 1;
    made.a_key = {&other_key, digest};
    made.b_key = {&one_key, digest};
    made.run();
    CHECK(made.b_why == refusal::key);
    made.a_key = made.b_key;
    made.run();
    CHECK(made.b_why == refusal::job);
    CHECK(made.a_why == refusal::job);
}

TEST_CASE("one that speaks another protocol learns nothing, another version learns ours") {
    acceptor foreign(identity_of(2), {}, nonce_of(2));
    const bytes request(6, std::byte{'G'});
    CHECK(foreign.arrived(request) == state::refused);
    CHECK(foreign.why() == refusal::foreign);
    CHECK(foreign.outgoing().empty());
    CHECK(foreign.wanted() == 0);

    ends made;
    made.run(1000, SIZE_MAX / 2, 4);
    CHECK(made.b_why == refusal::version);
    made = {};
    made.run(1000, 4);
    CHECK(made.a_why == refusal::version);
    made = {};
    made.run(1000, 0);
    CHECK(made.a_why == refusal::foreign);
}

TEST_CASE("with a key, no changed byte is agreed to by the end that reads it") {
    for (std::size_t flip = 0; flip < handshake::hello_bytes + handshake::answer_bytes; ++flip) {
        CAPTURE(flip);
        ends made;
        made.a_key = made.b_key = {&one_key, digest};
        made.run(1000, flip);
        CHECK(made.a_ends == state::refused);
        if (flip >= handshake::hello_bytes + handshake::proof_bytes) continue;
        made = {};
        made.a_key = made.b_key = {&one_key, digest};
        made.run(1000, SIZE_MAX / 2, flip);
        CHECK(made.b_ends == state::refused);
        CHECK_FALSE(made.a_ends == state::agreed);
    }
}

TEST_CASE("a proof of another handshake is refused") {
    ends made;
    made.a_key = made.b_key = {&one_key, digest};
    made.run();
    acceptor again(made.b, made.b_key, nonce_of(3));
    const byte_view said = made.to_b;
    std::size_t at = 0;
    while (again.wanted() != 0) {
        const std::size_t count = again.wanted();
        again.arrived(said.subspan(at, count));
        at += count;
    }
    CHECK(again.why() == refusal::key);
}

TEST_CASE("a handshake that is cut short agrees to nothing, and more than is wanted is refused") {
    ends made;
    made.run();
    for (std::size_t size = 0; size < made.to_b.size(); ++size) {
        acceptor c(made.b, {}, nonce_of(2));
        std::size_t at = 0;
        while (at < size) {
            const std::size_t count = std::min(size - at, c.wanted());
            c.arrived(byte_view(made.to_b).subspan(at, count));
            at += count;
        }
        CHECK(c.now() == state::needs_more);
        CHECK_THROWS_AS(c.accept(0), contract_violation);
        CHECK_THROWS_AS(c.arrived(bytes(c.wanted() + 1)), contract_violation);
    }
    dialer d(made.a, made.expected, {}, nonce_of(1));
    CHECK_THROWS_AS(d.prove(0), contract_violation);
}

TEST_CASE("encrypted ends agree where both know what only they share") {
    const auto run = [](bool d_encrypts, bool c_encrypts, unsigned d_shares, unsigned c_shares) {
        ends made;
        made.a.encrypts = d_encrypts;
        made.b.encrypts = c_encrypts;
        dialer d(made.a, made.expected, {&one_key, digest}, nonce_of(1));
        acceptor c(made.b, {&one_key, digest}, nonce_of(2));
        const auto bind = [](handshake& end, unsigned fill) {
            handshake::binding shared;
            shared.fill(static_cast<std::byte>(fill));
            if (fill != 0) end.bind(shared);
        };
        bind(d, d_shares);
        bind(c, c_shares);
        bytes said;
        for (bool moved = true; moved;) {
            moved = ends::carry(d, c, said, 1000, SIZE_MAX / 2);
            moved = ends::carry(c, d, said, 1000, SIZE_MAX / 2) || moved;
            if (d.now() == state::asks) d.prove(0), moved = true;
            if (c.now() == state::asks) c.accept(0), moved = true;
        }
        return std::pair(d.now() == state::agreed ? refusal::none : d.why(),
                         c.now() == state::agreed ? refusal::none : c.why());
    };
    CHECK(run(true, true, 1, 1) == std::pair(refusal::none, refusal::none));
    // Somebody stands between them, and has encrypted connections with both.
    CHECK(run(true, true, 1, 2) == std::pair(refusal::key, refusal::key));
    // Somebody says that ends encrypt which do not.
    CHECK(run(true, true, 0, 0) == std::pair(refusal::security, refusal::security));
    CHECK(run(true, true, 1, 0).second == refusal::security);
    CHECK(run(true, false, 1, 0) == std::pair(refusal::security, refusal::security));
    CHECK(run(false, true, 0, 1) == std::pair(refusal::security, refusal::security));
    CHECK(run(false, false, 1, 1) == std::pair(refusal::security, refusal::security));
}

TEST_CASE("an end that does not encrypt tells one that does") {
    const std::byte tls[] = {std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{1}, std::byte{2}, std::byte{1}};
    acceptor c(identity_of(2), {&one_key, digest}, nonce_of(2));
    c.arrived(tls);
    CHECK(c.why() == refusal::security);
    CHECK(c.peer_mode() == handshake::mode::encrypted);
    CHECK(c.outgoing().size() == handshake::hello_bytes);
}
