// A group on a user's tree that has no collectives of its own.
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

constexpr rill::topology::regular_tree shape{.width = 2, .depth = 2};
constexpr std::size_t n = 23;

std::vector<int> values_of(int rank) {
    std::vector<int> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<int>(i) * 10 + rank;
    return values;
}
std::vector<int> sum_of_all() {
    std::vector<int> sum(n);
    for (int r = 0; r < shape.size(); ++r)
        for (std::size_t i = 0; i < n; ++i) sum[i] += values_of(r)[i];
    return sum;
}

/// Calls `body(workers)` on each rank of a simulated network.
template <class Body>
void on_tree(Body body) {
    rill::simulated::run(shape.size(), {}, [&](auto& net) {
        rill::group workers{net, shape};
        body(workers);
    });
}

}  // namespace

TEST_CASE("a group on a tree: all_reduce") {
    on_tree([](auto& workers) {
        std::vector<int> sum(n);
        const rill::receipt done = rill::all_reduce(workers, values_of(workers.rank()), sum);
        CHECK(sum == sum_of_all());
        CHECK(done.rounds == 4);
        CHECK(done.contributors == shape.size());
    });
}

TEST_CASE("a group on a tree: all_reduce of what a codec selects") {
    on_tree([](auto& workers) {
        std::vector<float> own(n), sum(n), expected(n);
        for (std::size_t r = 0; r < 7; ++r) expected[3 * r] = static_cast<float>(r + 1);
        const auto rank = static_cast<std::size_t>(workers.rank());
        own[3 * rank] = expected[3 * rank];
        auto codec = rill::compress::top_k{.count = 1}.bind(n);
        rill::all_reduce(workers, own, sum, codec);
        CHECK(sum == expected);
    });
}

TEST_CASE("a group on a tree: reduce and broadcast, at every root") {
    on_tree([](auto& workers) {
        for (int root = 0; root < shape.size(); ++root) {
            std::vector<int> sum(n), sent = values_of(workers.rank());
            rill::reduce(workers, values_of(workers.rank()), sum, root);
            if (workers.rank() == root) CHECK(sum == sum_of_all());
            rill::broadcast(workers, sent, root);
            CHECK(sent == values_of(root));
        }
    });
}

TEST_CASE("a group on a tree: reduce_scatter and all_gather") {
    on_tree([](auto& workers) {
        const rill::segment own =
            rill::split(n, static_cast<std::size_t>(workers.size()), static_cast<std::size_t>(workers.rank()));
        std::vector<int> part(own.size()), all(n);
        rill::reduce_scatter(workers, values_of(workers.rank()), part);
        rill::all_gather(workers, part, all);
        CHECK(all == sum_of_all());
    });
}
