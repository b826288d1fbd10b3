#include <rill/session/detail/inquest.hpp>

#include <doctest/doctest.h>

#include "../support/scripted.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace asked {

constexpr std::uint64_t calls = 7, waits = 8;

/// Rank 1 of three. It and rank 2 are in operation 4; rank 0 is not, and says `of_rank_0` of its waits.
struct transport : rill::testing_support::scripted {
    explicit transport(std::optional<rill::call_signature> said) : scripted(1, 3), of_rank_0(said) {}

    std::optional<rill::call_signature> inquire(rill::rank_t peer, std::uint64_t context, std::uint64_t number,
                                                rill::deadline) {
        if (context == calls && peer != 0 && number == 4) return rill::call_signature{.number = 4};
        if (context == waits && peer == 0 && number == 3) return of_rank_0;
        return std::nullopt;
    }

    std::optional<rill::call_signature> of_rank_0;
};

rill::abort_notice blamed(std::optional<rill::call_signature> said) {
    transport net(said);
    const rill::call_signature own{.number = 4};
    const rill::detail::scene here{.context = calls, .operation = 4, .self = 1, .what = "barrier (operation 4)"};
    const rill::detail::inquest inquest{
        rill::detail::witnesses(net), here, waits, own, rill::no_options, rill::seconds(2)};
    try {
        inquest.nothing_came({.peer = 0});
    } catch (const rill::timeout& thrown) {
        return thrown.notice();
    }
}

/// Rank 1 of five. Ranks 0 and 3 call with another dimension than the others; the answers of ranks 0 and 2 are late.
struct late_transport : rill::testing_support::scripted {
    late_transport() : scripted(1, 5) {}

    std::optional<rill::call_signature> inquire(rill::rank_t peer, std::uint64_t context, std::uint64_t,
                                                rill::deadline) {
        if (context != calls) return std::nullopt;
        const bool is_late = peer == 0 || peer == 2;
        if (is_late && asked_[peer]++ < 2) return std::nullopt;
        return rill::call_signature{.number = 4, .dimension = peer == 0 || peer == 3 ? 11U : 10U};
    }

    int asked_[5] = {};
};

}  // namespace asked

TEST_CASE("inquest: of several ranks with another call the lowest is blamed, however late it answers") {
    asked::late_transport net;
    const rill::call_signature own{.number = 4, .dimension = 10};
    const rill::detail::scene here{.context = asked::calls, .operation = 4, .self = 1, .what = "barrier (operation 4)"};
    const rill::detail::inquest inquest{
        rill::detail::witnesses(net), here, asked::waits, own, rill::no_options, rill::seconds(2)};
    try {
        inquest.nothing_came({.peer = 0});
    } catch (const rill::mismatch& thrown) {
        CHECK(thrown.notice().culprit == 0);
    }
}

TEST_CASE("inquest: a rank that still waits in the operation before is not blamed for what it lacks") {
    const rill::detail::long_wait for_rank_2{.peer = 2, .of_round = 1};
    const auto stuck = asked::blamed(for_rank_2.announced_in(3));
    CHECK(stuck.culprit == 2);
    CHECK(stuck.other == 0);
    CHECK(stuck.reason ==
          "barrier (operation 4): rank 0 waited 2.000000 s for rank 2 in the operation before: slow, or the link "
          "between them is cut");
}

TEST_CASE("inquest: a rank that has not come and waits for nobody is blamed") {
    const std::string late = "barrier (operation 4): rank 0 has not entered the operation within 2.000000 s";
    for (const auto& said : {std::optional<rill::call_signature>(),
                             std::optional(rill::detail::long_wait{}.announced_in(3)),  // it no longer waits
                             std::optional(rill::call_signature{.number = 4, .kind = rill::operation::departure})}) {
        const auto blamed = asked::blamed(said);
        CHECK(blamed.culprit == 0);
        CHECK(blamed.other == 1);
        CHECK(blamed.reason == late);
    }
}
