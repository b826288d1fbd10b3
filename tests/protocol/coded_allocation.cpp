#include <rill/core/random.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/default_code.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>
#include <rill/gradient_code/given_code.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

using rill::coded_allocation;
using rill::data_share;
using rill::rank_t;
using rill::gradient_code::any_code;
using rill::topology::regular_tree;

namespace {

/// The code of Example 1 of the paper.
any_code example() {
    return rill::gradient_code::given_code(3, 3, 1, std::vector<double>{0.5, 1, 0, 0, 1, -1, 0.5, 0, 1});
}

/// The largest difference of a load from r·d.
double farthest(const coded_allocation& allocation) {
    double most = 0;
    for (rank_t rank = 1; rank < allocation.tree().size(); ++rank)
        most = std::max(most, std::abs(static_cast<double>(allocation.load_of(rank)) - allocation.ideal_load()));
    return most;
}

/// `lost` random children of each parent.
std::vector<rank_t> lose(regular_tree tree, int lost, std::uint64_t seed) {
    rill::random_sequence random(rill::random_key{seed});
    std::vector<rank_t> all;
    for (rank_t rank = 0; tree.children(tree.size(), rank) > 0; ++rank) {
        std::vector<rank_t> children(static_cast<std::size_t>(tree.width));
        for (int i = 0; i < tree.width; ++i) children[static_cast<std::size_t>(i)] = tree.child(tree.size(), rank, i);
        for (int i = 0; i < lost; ++i) {
            const auto at = static_cast<std::size_t>(i);
            std::swap(children[at], children[at + random.below(children.size() - at)]);
            all.push_back(children[at]);
        }
    }
    return all;
}

std::vector<data_share> shares(const coded_allocation& allocation, rank_t rank) {
    const auto of = allocation.shares_of(rank);
    return {of.begin(), of.end()};
}

}  // namespace

TEST_CASE("coded_allocation: reproduces Example 2 of CodedReduce exactly") {
    const any_code code = example();
    const coded_allocation allocation({.width = 3, .depth = 2}, code, 15);
    CHECK(allocation.ideal_part() == doctest::Approx(4.0 / 15).epsilon(1e-15));
    for (rank_t rank = 1; rank <= 12; ++rank) CHECK(allocation.load_of(rank) == 4);
    CHECK(shares(allocation, 0).empty());
    // D^T(1,1) is half of D1 and all of D2, in five parts of two points: the first two stay at (1,1), the other three
    // are divided among its children.
    CHECK(shares(allocation, 1) == std::vector<data_share>{{0, 4, 0.5}});
    CHECK(shares(allocation, 4) == std::vector<data_share>{{4, 5, 0.25}, {5, 6, 0.5}, {6, 8, 1}});
    CHECK(shares(allocation, 5) == std::vector<data_share>{{6, 8, 1}, {8, 10, -1}});
    CHECK(shares(allocation, 6) == std::vector<data_share>{{4, 5, 0.25}, {5, 6, 0.5}, {8, 10, 1}});
    CHECK(shares(allocation, 8) == std::vector<data_share>{{11, 13, -1}, {13, 15, 1}});
    CHECK(allocation.coverage_error(code, std::vector<rank_t>{2, 6, 7, 12}) < 1e-14);
    CHECK(to_string(allocation).starts_with("rank 1, layer 1, child of 0: 4 points: 0.5*[0, 4)\n"));
}

TEST_CASE("coded_allocation: every point counts once, whichever children are missing") {
    const std::pair<regular_tree, any_code> cases[] = {
        {{.width = 3, .depth = 2}, example()},
        {{.width = 4, .depth = 3}, rill::gradient_code::fractional_repetition{}.bind(4, 1)},
        {{.width = 5, .depth = 2}, rill::gradient_code::cyclic_mds{}.bind(5, 2)},
        {{.width = 5, .depth = 3}, rill::gradient_code::repetition_groups{}.bind(5, 1)},
        {{.width = 6, .depth = 1}, rill::gradient_code::cyclic_mds{}.bind(6, 3)},
        {{.width = 2, .depth = 4}, rill::gradient_code::cyclic_mds{}.bind(2, 0)},
    };
    for (const auto& [tree, code] : cases)
        for (const std::size_t points : {0U, 1U, 2U, 7U, 64U, 1000U})
            for (std::uint64_t seed = 0; seed < 5; ++seed)
                for (const int lost : {0, code.stragglers()}) {
                    const coded_allocation allocation(tree, code, points);
                    CHECK(allocation.coverage_error(code, lose(tree, lost, seed)) < 1e-9);
                }
}

TEST_CASE("coded_allocation: loads are r·d where the sizes divide") {
    const auto equal = [](regular_tree tree, int stragglers, std::size_t points, std::size_t load) {
        const coded_allocation allocation(tree, rill::gradient_code::cyclic_mds{}.bind(tree.width, stragglers), points);
        CHECK(allocation.ideal_load() == doctest::Approx(static_cast<double>(load)));
        CHECK(farthest(allocation) < 1e-6);
    };
    equal({.width = 3, .depth = 2}, 1, 150, 40);
    equal({.width = 12, .depth = 1}, 5, 24, 12);
    equal({.width = 12, .depth = 2}, 5, 49'920, 8'320);
    equal({.width = 4, .depth = 3}, 0, 8'400, 100);
}

TEST_CASE("coded_allocation: otherwise loads are within one point of r·d, except where no such allocation exists") {
    const auto most = [](regular_tree tree, const any_code& code) {
        double all = 0;
        for (std::size_t points = 0; points < 120; ++points)
            all = std::max(all, farthest(coded_allocation(tree, code, points)));
        return all;
    };
    using namespace rill::gradient_code;
    CHECK(most({.width = 4, .depth = 3}, fractional_repetition{}.bind(4, 1)) < 1);
    CHECK(most({.width = 6, .depth = 2}, cyclic_mds{}.bind(6, 2)) < 1);
    CHECK(most({.width = 5, .depth = 2}, repetition_groups{}.bind(5, 2)) < 1);
    // Three sub-trees share two copies of d points. Where r·d = f + 1/15 with f odd, one of them gets at most 2.5 f -
    // 0.5 points. But a parent with f points and two copies of its children's data, f for each of three, needs 2.5 f +
    // 0.5.
    CHECK(most({.width = 3, .depth = 2}, cyclic_mds{}.bind(3, 1)) == doctest::Approx(1 + 1.0 / 15));
    CHECK(farthest(coded_allocation({.width = 3, .depth = 2}, cyclic_mds{}.bind(3, 1), 4)) ==
          doctest::Approx(1 + 1.0 / 15));
}

TEST_CASE("coded_allocation: 156 workers and 100,000 points") {
    const any_code code = rill::gradient_code::default_code(12, 3, rill::element_type::float32).code;
    const regular_tree tree{.width = 12, .depth = 2};
    const coded_allocation allocation(tree, code, 100'000);
    CHECK(allocation.ideal_part() == doctest::Approx(1.0 / 12));
    CHECK(farthest(allocation) <= 1);
    CHECK(allocation.coverage_error(code, lose(tree, 3, 1)) < 1e-9);
    std::size_t shares = 0;
    for (rank_t rank = 1; rank < tree.size(); ++rank) shares += allocation.shares_of(rank).size();
    CHECK(shares == 156);  // of repetition: neighbouring partitions form one range
}

TEST_CASE("coded_allocation: too many losses and a code of another size are refused") {
    const any_code code = example();
    const regular_tree tree{.width = 3, .depth = 2};
    CHECK_THROWS_AS(coded_allocation(tree, code, 15).coverage_error(code, std::vector<rank_t>{4, 5}),
                    rill::contract_violation);
    CHECK_THROWS_WITH_AS(coded_allocation({.width = 4, .depth = 2}, code, 15),
                         doctest::Contains("one worker per child"), rill::contract_violation);
    CHECK_THROWS_AS(coded_allocation(tree, code, 15).shares_of(13), rill::contract_violation);
}
