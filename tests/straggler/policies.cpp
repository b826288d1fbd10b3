#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/everyone.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/sampled.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/testing/straggler_laws.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace rill::straggler;
namespace testing = rill::testing;

namespace policies {

/// Breaks every law.
struct contrary {
    static constexpr const char* name = "contrary";
    static constexpr bool own_round_only = true;

    static bool is_complete(const rill::gathering& g) { return g.in.size() == 1 && !g.time_is_up; }
    static rill::duration patience(int height) { return rill::seconds(-height); }
    static bool accepts(std::uint32_t age) { return age == 1; }
    static bool may_lead(std::uint32_t lag) { return lag == 1; }
    static bool asks(rill::rank_t, int, rill::random_key) { return false; }
    static bool starts(std::span<const rill::rank_t> ready, int, rill::random_key) { return ready.empty(); }

    static void choose(int size, rill::random_key, std::vector<int>& places) { places.assign(places.size(), size); }
    static double share(std::size_t i, std::size_t) { return static_cast<double>(i); }
    static double weight(std::size_t) { return 2; }

    rill::rank_t parent(int, rill::rank_t rank) const { return rank - 1; }
    int children(int, rill::rank_t) const { return 0; }
    rill::rank_t child(int, rill::rank_t, int) const { return 0; }
    int height(int, rill::rank_t) const { return 0; }

    friend bool operator==(contrary, contrary) = default;
};

}  // namespace policies

namespace {

const auto holds = [](const char* name, const testing::law_outcome& outcome) {
    CAPTURE(name);
    CAPTURE(outcome.what);
    CHECK(outcome.held);
};

/// The number of laws that do not hold.
template <class Check>
int broken(Check&& check) {
    int count = 0;
    check([&](const char*, const testing::law_outcome& outcome) { count += outcome.held ? 0 : 1; });
    return count;
}

bool complete(const auto& completion, int expected, const std::vector<int>& in, bool time_is_up = false) {
    return completion.is_complete({.expected = expected, .in = in, .time_is_up = time_is_up});
}

}  // namespace

TEST_CASE("straggler: completions keep their laws") {
    testing::for_each_completion_law(wait_all{}, holds);
    for (const int some : {-1, 0, 1, 3, 100}) {
        testing::for_each_completion_law(fastest{some}, holds);
        testing::for_each_completion_law(tolerate{some}, holds);
        testing::for_each_completion_law(until{.after = rill::milliseconds(1), .at_least = some}, holds);
    }
    CHECK(broken([](auto visit) { testing::for_each_completion_law(policies::contrary{}, visit); }) == 3);
}

TEST_CASE("straggler: completions decide when a gather has enough") {
    CHECK(!complete(wait_all{}, 3, {0, 2}));
    CHECK(complete(wait_all{}, 3, {0, 1, 2}));
    CHECK(!complete(fastest{2}, 3, {1}, true));
    CHECK(complete(fastest{2}, 3, {1, 2}));
    CHECK(complete(fastest{5}, 3, {0, 1, 2}));
    CHECK(!complete(tolerate{1}, 3, {2}, true));
    CHECK(complete(tolerate{1}, 3, {0, 2}));
    CHECK(complete(tolerate{-4}, 3, {0, 1, 2}));
    CHECK(!complete(until{.at_least = 1}, 3, {1}));
    CHECK(complete(until{.at_least = 1}, 3, {1}, true));
    CHECK(!complete(until{.at_least = 2}, 3, {1}, true));
    CHECK(until{.after = rill::milliseconds(2)}.patience(3) == rill::milliseconds(6));
    CHECK(until{.after = rill::endless_patience}.patience(3) == rill::endless_patience);
}

TEST_CASE("straggler: stalenesses keep their laws") {
    testing::for_each_staleness_law(fresh{}, holds);
    testing::for_each_staleness_law(unbounded{}, holds);
    testing::for_each_staleness_law(in_step{}, holds);
    for (const std::uint32_t rounds : {0U, 1U, 7U, std::numeric_limits<std::uint32_t>::max()})
        testing::for_each_staleness_law(bounded{rounds}, holds);
    CHECK(broken([](auto visit) { testing::for_each_staleness_law(policies::contrary{}, visit); }) == 4);
    CHECK(!fresh{}.accepts(1));
    CHECK(bounded{2}.accepts(2));
    CHECK(!bounded{2}.accepts(3));
    CHECK(bounded{2}.may_lead(1));
    CHECK(!bounded{2}.may_lead(2));
}

TEST_CASE("straggler: triggers keep their laws") {
    testing::for_each_trigger_law(solo{}, holds);
    testing::for_each_trigger_law(all_ready{}, holds);
    testing::for_each_trigger_law(majority{}, holds);
    for (int probes = 1; probes <= 7; ++probes) testing::for_each_trigger_law(two_choices{probes}, holds);
    CHECK(broken([](auto visit) { testing::for_each_trigger_law(policies::contrary{}, visit); }) == 4);
}

TEST_CASE("straggler: two_choices asks as many ranks as it says, each equally often") {
    constexpr int size = 10, rounds = 20'000;
    for (const int probes : {1, 2, 3, 10}) {
        std::vector<int> asked(size);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            int in_round = 0;
            for (int rank = 0; rank < size; ++rank)
                if (two_choices{probes}.asks(rank, size, rill::random_key{7}.derive(round)))
                    ++asked[static_cast<std::size_t>(rank)], ++in_round;
            CHECK(in_round == probes);
        }
        for (const int count : asked) CHECK(count == doctest::Approx(rounds * probes / size).epsilon(0.1));
    }
    CHECK(two_choices{3}.asks(1, 2, {}));  // fewer ranks than probes: all are asked
}

TEST_CASE("straggler: two_choices with one probe is majority, with all solo") {
    for (std::uint64_t round = 0; round < 100; ++round)
        for (int rank = 0; rank < 5; ++rank) {
            const rill::random_key key{round};
            const std::vector<rill::rank_t> ready{rank};
            CHECK(two_choices{1}.asks(rank, 5, key) == majority::asks(rank, 5, key));
            CHECK(two_choices{1}.starts(ready, 5, key) == majority::starts(ready, 5, key));
            CHECK(two_choices{5}.starts(ready, 5, key) == solo::starts(ready, 5, key));
        }
}

TEST_CASE("straggler: two_choices refuses a number of probes that the ranks cannot have") {
    CHECK_NOTHROW(two_choices{5}.require_options(5, 0));
    for (const int probes : {0, -1, 6})
        CHECK_THROWS_WITH_AS(two_choices{probes}.require_options(5, 3), doctest::Contains("two_choices: probes is"),
                             rill::contract_violation);
}

TEST_CASE("straggler: participations keep their laws") {
    testing::for_each_participation_law(everyone{}, holds);
    for (const double fraction : {0.01, 0.3, 0.5, 1.0})
        testing::for_each_participation_law(sampled{.fraction = fraction}, holds);
    CHECK(broken([](auto visit) { testing::for_each_participation_law(policies::contrary{}, visit); }) == 3);
}

TEST_CASE("straggler: a sample has as many as it says, each equally often, and pairs too") {
    constexpr int size = 9, rounds = 20'000;
    for (const double fraction : {0.01, 0.25, 0.5, 1.0}) {
        const sampled policy{.fraction = fraction};
        const int count = fraction == 0.01 ? 1 : fraction == 0.25 ? 2 : fraction == 0.5 ? 5 : 9;
        CHECK(policy.count(size) == count);
        std::vector<int> asked(size), places;
        int pairs = 0;  // of the first and the last
        for (std::uint64_t round = 0; round < rounds; ++round) {
            policy.choose(size, rill::random_key{7}.derive(round), places);
            CHECK(places.size() == static_cast<std::size_t>(count));
            for (const int place : places) ++asked[static_cast<std::size_t>(place)];
            pairs += places.front() == 0 && places.back() == size - 1 && count > 1 ? 1 : 0;
        }
        for (const int each : asked) CHECK(each == doctest::Approx(rounds * count / size).epsilon(0.05));
        if (count > 1) CHECK(pairs == doctest::Approx(rounds * count * (count - 1) / (size * (size - 1))).epsilon(0.1));
    }
}

TEST_CASE("straggler: a sample of nobody, or of more than all, is refused") {
    CHECK_NOTHROW(sampled{.fraction = 1}.require_options(5, 0));
    for (const double fraction : {0.0, -0.5, 1.01, std::numeric_limits<double>::quiet_NaN()})
        CHECK_THROWS_WITH_AS(sampled{fraction}.require_options(5, 3), doctest::Contains("sampled: fraction is"),
                             rill::contract_violation);
}

TEST_CASE("straggler: backlogs keep their laws") {
    testing::for_each_backlog_law(plain_sum{}, holds);
    testing::for_each_backlog_law(linear_mean{}, holds);
    CHECK(broken([](auto visit) { testing::for_each_backlog_law(policies::contrary{}, visit); }) == 3);
}

TEST_CASE("straggler: linear_mean counts newer gradients more") {
    CHECK(linear_mean::share(0, 3) == doctest::Approx(1.0 / 6));
    CHECK(linear_mean::share(1, 3) == doctest::Approx(2.0 / 6));
    CHECK(linear_mean::share(2, 3) == doctest::Approx(3.0 / 6));
    CHECK(linear_mean::weight(3) == 1);
    CHECK(plain_sum::weight(3) == 3);
}

TEST_CASE("straggler: trees keep their laws") {
    for (int size = 1; size <= 40; ++size) {
        CAPTURE(size);
        testing::for_each_tree_law(rill::topology::star{}, size, holds);
        for (int arity = 1; arity <= 6; ++arity) testing::for_each_tree_law(rill::topology::tree{arity}, size, holds);
    }
    CHECK(broken([](auto visit) { testing::for_each_tree_law(policies::contrary{}, 3, visit); }) == 1);
    CHECK(rill::topology::star{}.children(9, 0) == 8);
    CHECK(rill::topology::tree{1}.height(9, 0) == 8);
    CHECK(rill::topology::tree{2}.height(7, 0) == 2);
}
