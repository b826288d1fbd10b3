#include <rill/train/accuracy.hpp>

#include "samples.hpp"

#include <rill/train/softmax_regression.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace rill;
using namespace rill::train;

TEST_CASE("accuracy: counts correctly classified rows, also in shards") {
    const dataset data = random_dataset(300, 4, 4);
    softmax_regression<float> model(4, 4);
    std::vector<float> w(model.dimension());
    // the scores are the features, by which the labels are defined
    for (std::size_t c = 0; c < 4; ++c) w[c * 4 + c] = 1;
    CHECK(accuracy(model, w, data) == 1);
    w[0] = -1;  // class 0 is never chosen
    const auto zeros = static_cast<std::size_t>(std::count(data.labels.begin(), data.labels.end(), 0));
    CHECK(count_correct(model, w, data, {0, 300}) == 300 - zeros);
    std::size_t sum = 0;
    for (rank_t rank = 0; rank < 7; ++rank) sum += count_correct(model, w, data, shard(data, rank, 7));
    CHECK(sum == 300 - zeros);
    CHECK(count_correct(model, w, data, {5, 5}) == 0);
    CHECK_THROWS_AS(count_correct(model, w, data, {0, 301}), contract_violation);
}
