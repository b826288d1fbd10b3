// Messages of an agreement as bytes: a view travels as the difference from the one that it follows.
#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/quorum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using rill::rank_t;
using rill::view;
using rill::detail::agreement_frame;
using rill::detail::agreement_machine;
using rill::detail::agreement_message;
using form = agreement_message::form;

namespace {

view of_ranks(std::uint32_t epoch, int count) {
    view made{.epoch = epoch};
    for (rank_t rank = 0; rank < count; ++rank) {
        made.members.push_back(rank);
        made.incarnations.push_back(static_cast<std::uint64_t>(rank) + 100);
    }
    return made;
}
/// Without the ranks `gone`, and with a later life of `anew` and another rank in the last seat.
view after(const view& of, const std::vector<rank_t>& gone, rank_t anew, rank_t newcomer) {
    view made{.epoch = of.epoch + 1};
    for (std::size_t i = 0; i < of.members.size(); ++i) {
        if (std::count(gone.begin(), gone.end(), of.members[i]) > 0) continue;
        made.members.push_back(of.members[i]);
        made.incarnations.push_back(of.members[i] == anew ? 7 : of.incarnations[i]);
    }
    made.members.push_back(newcomer);
    made.incarnations.push_back(8);
    return made;
}
agreement_frame decision(const view& next, form how = form::difference) {
    agreement_frame frame{.life = 3};
    frame.message.kind = agreement_message::what::decide;
    frame.message.view_is = how;
    frame.message.epoch = next.epoch;
    frame.message.value = {.next = next, .step = 5, .unheard = {1}, .left = {2}};
    return frame;
}
std::string why_not(rill::byte_view bytes, const view& known) {
    try {
        (void)rill::detail::read_agreement_frame(bytes, 1001, known);
    } catch (const rill::protocol_error& thrown) {
        return thrown.what();
    }
    return "";
}

const view before = of_ranks(4, 1000);
const view next = after(before, {2, 500}, 700, 1000);

}  // namespace

TEST_CASE("a decision to a member costs as many bytes as ranks come and go, and its view is read whole") {
    const rill::buffer bytes = to_message(decision(next), &before);
    CHECK(bytes.size() < 400);
    const agreement_message got = rill::detail::read_agreement_frame(bytes, 1001, before).message;
    CHECK(got.value == decision(next).message.value);
    CHECK(got.view_is == form::difference);
    CHECK(got.epoch == next.epoch);
}

TEST_CASE("whoever does not know the view that a decision ends cannot read it, and gets it whole") {
    const rill::buffer difference = to_message(decision(next), &before);
    view other = before;  // the same epoch of another job
    other.incarnations[3] = 1;
    for (const view& known : {view{}, of_ranks(3, 1000), of_ranks(5, 1000), other}) {
        const agreement_message got = rill::detail::read_agreement_frame(difference, 1001, known).message;
        CHECK(got.view_is == form::unread);
        CHECK(got.kind == agreement_message::what::decide);
        CHECK(got.epoch == next.epoch);
        CHECK(got.value.next.members.empty());
        for (const rill::buffer& whole :
             {to_message(decision(next)), to_message(decision(next, form::whole), &before)}) {
            const agreement_message read = rill::detail::read_agreement_frame(whole, 1001, known).message;
            CHECK(read.value == decision(next).message.value);
            CHECK(read.view_is == form::whole);
        }
    }
}

TEST_CASE("a machine names the view that its decision ends, and writes whole what newcomers are to read") {
    using event = rill::detail::agreement_event;
    agreement_machine first({.next = of_ranks(4, 3), .step = 5}, 0, rill::quorum::majority,
                            {.repeat = rill::seconds(1), .patience = rill::seconds(4), .longest = rill::seconds(100)});
    CHECK(first.ended_by({.next = {.epoch = 4}}) == nullptr);
    const auto tell = [&](const event& what) { return first.on(what, {}); };
    const auto hear = [&](rank_t from, agreement_message::what kind, const agreement_message& to) {
        agreement_message said;
        said.kind = kind, said.epoch = 4, said.at = to.at, said.prepared = said.committed = 5;
        return first.on({.happened = event::what::arrived, .peer = from, .message = &said}, {});
    };
    // Rank 2 has ended and begins anew in its seat, and rank 3 comes.
    tell({.happened = event::what::changed, .peer = 2, .change = rill::peer_change::ended, .incarnation = 102});
    tell({.happened = event::what::joins, .peer = 2, .incarnation = 9});
    tell({.happened = event::what::joins, .peer = 3, .incarnation = 9});
    const auto asked = tell({.happened = event::what::ends});
    const auto proposed = hear(1, agreement_message::what::answer, asked.front().message);
    CHECK(first.ended_by(proposed.front().message.value)->epoch == 4);
    int told = 0;
    for (const auto& each : hear(1, agreement_message::what::accepted, asked.front().message)) {
        ++told;
        CHECK(each.message.kind == agreement_message::what::decide);
        CHECK(each.message.view_is == (each.peer == 1 ? form::difference : form::whole));
        CHECK(first.ended_by(each.message.value)->epoch == 4);
    }
    CHECK(told == 3);
    CHECK(first.view().epoch == 5);
}

TEST_CASE("a difference that no two views have is refused") {
    const rill::buffer good = to_message(decision(next), &before);
    CHECK(why_not(good, before) == "");
    // From the start: 16 numbers to the decision's flags (see to_message), the base, 3 ranks that go, and 2 seats.
    const auto with = [&](std::size_t number, std::uint64_t value) {
        rill::buffer bad = good;
        std::memcpy(bad.data() + 8 * number, &value, 8);
        return why_not(bad, before);
    };
    constexpr std::size_t epoch = 14, base = 18, gone = 20, come = 24;
    const std::string nonsense = "its view makes no sense";
    CHECK(with(gone, 1) == "");                                   // another rank goes
    CHECK(with(gone, 500).find(nonsense) != std::string::npos);   // twice
    CHECK(with(gone, 1000).find(nonsense) != std::string::npos);  // is no member
    CHECK(with(gone, 1001).find("out of range") != std::string::npos);
    CHECK(with(come, 701).find(nonsense) != std::string::npos);      // is a member, and does not go
    CHECK(with(come + 1, 800).find(nonsense) != std::string::npos);  // comes in the life that goes
    CHECK(with(come + 2, 700).find(nonsense) != std::string::npos);  // twice
    CHECK(with(epoch, 6).find("it ends another view") != std::string::npos);
    CHECK(with(base, 0).find(nonsense) != std::string::npos);  // nobody goes from nothing
    for (std::size_t size = 0; size < good.size(); size += 8)
        CHECK(why_not(rill::byte_view(good).first(size), before) != "");
}
