#include <rill/train/minibatches.hpp>

#include "samples.hpp"

#include <rill/core/contract.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace rill;
using namespace rill::train;

TEST_CASE("minibatches: batches of the dataset in the order of the sampler") {
    const dataset data = random_dataset(50, 2, 2);
    const sampler::options order{.rows = 50, .batch = 4, .rank = 1, .ranks = 3, .key = {5}};
    sampler reference(order);
    minibatches all_rows(data, {.batch = 4, .rank = 1, .ranks = 3, .key = {5}});
    for (int step = 0; step < 10; ++step) {
        const auto rows = reference.next();
        const batch next = all_rows.next();
        CHECK(&next.data == &data);
        CHECK(std::equal(rows.begin(), rows.end(), next.rows.begin(), next.rows.end()));
    }
    CHECK(all_rows.order().epoch() == reference.epoch());
    CHECK_THROWS_AS(minibatches(data, {.rows = 51, .batch = 4}), contract_violation);
}
