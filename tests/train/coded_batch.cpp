#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/train/coded_batch.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using rill::coded_allocation;
using rill::train::coded_batch;

TEST_CASE("coded_batch: the rows of a rank with their coefficients, as shares of a mean") {
    const rill::topology::regular_tree tree{4, 1};
    const coded_allocation allocation(tree, rill::gradient_code::cyclic_mds{}.bind(4, 1), 21);
    rill::train::dataset data{21, 1, 2, {}, {}};
    data.features.resize(21);
    data.labels.resize(21);
    for (rill::rank_t rank = 0; rank < tree.size(); ++rank) {
        const coded_batch mine(data, allocation, rank);
        const auto batch = mine.next();
        CHECK(mine.load() == allocation.load_of(rank));
        REQUIRE(batch.rows.size() == batch.weights.size());
        std::size_t i = 0;
        for (const rill::data_share& share : allocation.shares_of(rank))
            for (std::size_t row = share.first; row < share.last; ++row, ++i) {
                CHECK(batch.rows[i] == row);
                CHECK(batch.weights[i] * 21 == doctest::Approx(share.coefficient));
            }
        CHECK(i == mine.load());
    }
    CHECK(coded_batch(data, allocation, 0).load() == 0);
    data.rows = 20;
    CHECK_THROWS_AS(coded_batch(data, allocation, 1), rill::contract_violation);
}
