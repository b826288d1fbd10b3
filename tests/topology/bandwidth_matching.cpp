// The matching over fast links by a plain matcher: what it promises, whatever the matcher.
// tests/adapt/boost_matching.cpp has the figures.
#include <rill/testing/mixing_laws.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/verify_mixing.hpp>

#include "../support/greedy_matcher.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace bandwidth_matching_cases {

using namespace rill;
using topology::bandwidth_matching;

bandwidth_matching among(int size, int window = 0) {
    bandwidth_matching made{.links = std::vector<double>(static_cast<std::size_t>(size * size)),
                            .least = 0.5,
                            .window = window,
                            .matcher = support::greedy_matcher{}};
    random_sequence random(random_key{17});
    for (double& each : made.links) each = 1.0 - static_cast<double>(random.uniform());
    return made;
}

/// The partners in a round; a rank that rests is its own.
template <class Bound>
std::vector<rank_t> partners_in(Bound& bound, int size, std::uint64_t round) {
    std::vector<rank_t> all;
    mixing_row row;
    for (rank_t rank = 0; rank < size; ++rank) {
        bound.fill(round, rank, row);
        all.push_back(row.receivers.empty() ? rank : row.receivers[0]);
    }
    return all;
}

void refused(const bandwidth_matching& mixing, int size, const char* why) {
    CHECK_THROWS_WITH_AS((void)mixing.bind(size, {}), doctest::Contains(why), contract_violation);
}

TEST_CASE("bandwidth_matching: keeps the laws of mixings") {
    for (const int size : {1, 2, 3, 4, 7, 12})
        testing::for_each_mixing_law(among(size), std::vector<int>{size},
                                     [&](const char* name, const testing::law_outcome& outcome) {
                                         CAPTURE(name);
                                         CHECK_MESSAGE(outcome.held, outcome.what);
                                     });
}

TEST_CASE("bandwidth_matching: its rounds join all ranks") {
    for (const int size : {2, 3, 5, 8, 16}) {
        CAPTURE(size);
        CHECK(topology::verify_mixing(among(size, 5), size, {.count = 60, .window = 10}).ok);
    }
}

TEST_CASE("bandwidth_matching: a bridge is the fastest link that joins what has not met, or any") {
    // Ranks 0 to 3 and 4 to 7 are fast among themselves. Between them one link is less slow than all others.
    bandwidth_matching mixing{
        .links = std::vector<double>(64, 0.01), .least = 1, .window = 5, .matcher = support::greedy_matcher{}};
    for (std::size_t i = 0; i < 8; ++i)
        for (std::size_t j = 0; j < 8; ++j)
            if (i / 4 == j / 4) mixing.links[i * 8 + j] = 2;
    mixing.links[1 * 8 + 6] = mixing.links[6 * 8 + 1] = 0.5;
    const auto slow_pairs = [&] {
        auto bound = mixing.bind(8, random_key{1});
        int met = 0, others = 0;
        for (std::uint64_t round = 0; round < 60; ++round) {
            const auto partner = partners_in(bound, 8, round);
            met += partner[1] == 6;
            for (std::size_t rank = 0; rank < 4; ++rank) others += partner[rank] >= 4 && (rank != 1 || partner[1] != 6);
        }
        return std::pair(met, others);
    };
    // The ends of the bridge leave an odd number of fast ranks on each side, of which one pair is slow as well.
    const auto [met, others] = slow_pairs();
    CHECK(met >= 12);
    CHECK(others <= met);
    mixing.bridge = topology::bridges::any;
    CHECK(slow_pairs().second > others);
}

TEST_CASE("bandwidth_matching: the slower way of a link counts, and 0 is no link") {
    bandwidth_matching mixing{.links = {0, 9, 9, 0, 1, 0, 9, 9, 9, 9, 0, 1, 0, 9, 9, 0},
                              .least = 5,
                              .window = 2,
                              .matcher = support::greedy_matcher{}};
    auto bound = mixing.bind(4, {});
    int fast = 0;
    for (std::uint64_t round = 0; round < 100; ++round) {
        const auto partner = partners_in(bound, 4, round);
        CHECK(partner[0] != 3);
        fast += partner[0] == 2 && partner[1] == 3;  // 0 and 1, 2 and 3 have a slow way
    }
    CHECK(fast > 40);
}

TEST_CASE("bandwidth_matching: of an odd number each rank rests as often as the others") {
    auto bound = among(7).bind(7, random_key{4});
    std::vector<int> rests(7);
    for (std::uint64_t round = 0; round < 70; ++round) {
        const auto partner = partners_in(bound, 7, round);
        for (std::size_t rank = 0; rank < 7; ++rank) rests[rank] += partner[rank] == static_cast<rank_t>(rank);
    }
    CHECK(rests == std::vector<int>(7, 10));
}

TEST_CASE("bandwidth_matching: ranks that do not attend are matched with nobody") {
    auto bound = among(6).bind(6, random_key{4});
    partners_in(bound, 6, 9);
    bound.attend(2, false);
    for (std::uint64_t round = 10; round < 40; ++round) {
        const auto partner = partners_in(bound, 6, round);
        CHECK(partner[2] == 2);
        int rest = 0;
        for (std::size_t rank = 0; rank < 6; ++rank) rest += partner[rank] == static_cast<rank_t>(rank);
        CHECK(rest == 2);
    }
    bound.attend(2, true);
    CHECK(partners_in(bound, 6, 40)[2] != 2);
}

TEST_CASE("bandwidth_matching: links that are none, short windows and no matcher are refused") {
    const auto with = [](std::size_t at, double speed) {
        bandwidth_matching mixing = among(4);
        mixing.links[at] = speed;
        return mixing;
    };
    refused(with(2 * 4 + 1, -1), 4, "row 2, column 1 is -1");
    refused(with(3, std::nan("")), 4, "row 0, column 3 is");
    refused(with(7, std::numeric_limits<double>::infinity()), 4, "row 1, column 3 is");
    CHECK_NOTHROW((void)with(5, std::nan("")).bind(4, {}));  // of a rank to itself
    refused(among(4), 5, "5 ranks need 25 links, row by row, not 16");
    refused(among(32, 4), 32, "a window of 4 rounds is too short for 32 ranks, which need 5");
    CHECK_NOTHROW((void)among(32, 5).bind(32, {}));
    bandwidth_matching none = among(4);
    none.matcher = {};
    refused(none, 4, "it has no matcher; use adapt::boost_matching{}");
    bandwidth_matching slow = among(4);
    for (const double least : {-5.0, std::nan("")}) {
        slow.least = least;
        refused(slow, 4, "least is");
    }
}

/// Answers with the same partners for whoever asks.
template <int first, int second>
struct stubborn {
    static constexpr const char* name = "stubborn";
    static std::vector<rank_t> match(int ranks, std::span<const std::array<rank_t, 2>>) {
        std::vector<rank_t> partners(static_cast<std::size_t>(ranks), second);
        partners[0] = first;
        return partners;
    }
    friend bool operator==(stubborn, stubborn) = default;
};

TEST_CASE("bandwidth_matching: the answer of a matcher that is no matching is refused") {
    const auto refuses = [](topology::any_matcher matcher) {
        bandwidth_matching mixing = among(4);
        mixing.matcher = matcher;
        auto bound = mixing.bind(4, {});
        mixing_row row;
        CHECK_THROWS_WITH_AS(bound.fill(0, 0, row), doctest::Contains("the matcher stubborn is no matching"),
                             contract_violation);
    };
    refuses(stubborn<99, no_rank>{});
    refuses(stubborn<1, no_rank>{});
    refuses(stubborn<0, 0>{});
    refuses(stubborn<-7, no_rank>{});
}

TEST_CASE("bandwidth_matching: options are part of its fingerprint") {
    const bandwidth_matching given = among(4);
    bandwidth_matching other = given;
    CHECK(fingerprint(given) == fingerprint(other));
    CHECK(given == other);
    other.links[3] *= 2;
    CHECK(fingerprint(given) != fingerprint(other));
    other = given, other.bridge = topology::bridges::any;
    CHECK(fingerprint(given) != fingerprint(other));
    other = given, other.matcher = {};
    CHECK(fingerprint(given) != fingerprint(other));
    CHECK(given != other);
}

}  // namespace bandwidth_matching_cases
