#include <rill/train/dataset.hpp>

#include <doctest/doctest.h>

using namespace rill;
using namespace rill::train;

TEST_CASE("dataset: shards are consecutive, nearly equal and cover all rows") {
    const dataset data{.rows = 11, .columns = 1, .classes = 2, .features = {}, .labels = {}};
    for (int size = 1; size <= 13; ++size) {
        std::size_t next = 0;
        for (rank_t rank = 0; rank < size; ++rank) {
            const segment part = shard(data, rank, size);
            CHECK(part.begin == next);
            CHECK(part.size() >= data.rows / static_cast<std::size_t>(size));
            CHECK(part.size() <= data.rows / static_cast<std::size_t>(size) + 1);
            next = part.end;
        }
        CHECK(next == data.rows);
    }
    CHECK_THROWS_AS(shard(data, 3, 3), contract_violation);
}
