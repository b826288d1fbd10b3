#include "../support/scratch.hpp"

#include <rill/train/checkpoint.hpp>
#include <rill/train/sampler.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::train;

static_assert(Persistent<sampler>);

namespace {

std::vector<std::uint32_t> take(sampler& from, std::size_t steps) {
    std::vector<std::uint32_t> rows;
    for (std::size_t s = 0; s < steps; ++s) {
        const auto next = from.next();
        rows.insert(rows.end(), next.begin(), next.end());
    }
    return rows;
}

}  // namespace

TEST_CASE("sampler: in an epoch the ranks' batches are disjoint") {
    const std::size_t rows = 53, each = 4;
    std::vector<std::set<std::uint32_t>> epochs(3);
    for (rank_t rank = 0; rank < 3; ++rank) {
        sampler samples({.rows = rows, .batch = each, .rank = rank, .ranks = 3, .key = {1}});
        CHECK(samples.steps_per_epoch() == 4);
        for (auto& seen : epochs)
            for (std::uint32_t row : take(samples, 4)) {
                CHECK(row < rows);
                CHECK(seen.insert(row).second);
            }
        CHECK(samples.epoch() == 3);
        CHECK(samples.step() == 0);
    }
    for (const auto& seen : epochs) CHECK(seen.size() == 48);
    CHECK(epochs[0] != epochs[1]);  // other rows are left out
}

TEST_CASE("sampler: many ranks together take the rows that one rank takes") {
    sampler alone({.rows = 100, .batch = 12, .key = {5}});
    const auto all = take(alone, 16);
    for (rank_t rank = 0; rank < 3; ++rank) {
        sampler part({.rows = 100, .batch = 4, .rank = rank, .ranks = 3, .key = {5}});
        for (std::size_t step = 0; step < 16; ++step) {
            const auto mine = part.next();
            const auto first = all.begin() + static_cast<long>(step * 12) + rank * 4;
            CHECK(std::equal(mine.begin(), mine.end(), first, first + 4));
        }
    }
}

TEST_CASE("sampler: the key and the epoch choose the permutation") {
    sampler a({.rows = 64, .batch = 64, .key = {1}}), b({.rows = 64, .batch = 64, .key = {2}});
    const auto first = take(a, 1), second = take(a, 1);
    CHECK(first != second);
    CHECK(first != take(b, 1));
    CHECK(std::vector(first.begin(), first.begin() + 4) == std::vector<std::uint32_t>{57, 32, 30, 55});
}

TEST_CASE("sampler: every row is equally likely at every place") {
    std::vector<int> count(5 * 5);
    sampler samples({.rows = 5, .batch = 5, .key = {3}});
    for (int epoch = 0; epoch < 5000; ++epoch) {
        const auto order = samples.next();
        for (std::size_t place = 0; place < 5; ++place) ++count[place * 5 + order[place]];
    }
    for (int n : count) CHECK(std::abs(n - 1000) < 150);  // five standard deviations
}

TEST_CASE("sampler: continues from a checkpoint, also between epochs") {
    const scratch_directory here;
    const sampler::options options{.rows = 30, .batch = 5, .rank = 1, .ranks = 2, .key = {9}};
    for (std::size_t steps : {0U, 2U, 3U, 4U, 7U}) {
        CAPTURE(steps);
        sampler original(options), resumed(options);
        take(original, steps);
        take(resumed, 1);
        checkpoint::writer out;
        original.save(out, "rank 1/");
        out.save(here / "saved");
        resumed.restore(checkpoint::load(here / "saved"), "rank 1/");
        CHECK(resumed.epoch() == original.epoch());
        CHECK(resumed.step() == original.step());
        CHECK(take(resumed, 8) == take(original, 8));
    }
}

TEST_CASE("sampler: refuses the position of another sampler") {
    const scratch_directory here;
    checkpoint::writer out;
    sampler({.rows = 30, .batch = 5, .key = {9}}).save(out, "");
    out.save(here / "saved");
    const checkpoint saved = checkpoint::load(here / "saved");
    sampler other({.rows = 31, .batch = 5, .key = {9}}), wider({.rows = 30, .batch = 6, .key = {9}});
    const std::string rows = message_of<data_error>([&] { other.restore(saved, ""); });
    CHECK_MESSAGE(has(rows, "saved: section \"sampler\", rows: expected 31, found 30"), rows);
    const std::string batch = message_of<data_error>([&] { wider.restore(saved, ""); });
    CHECK_MESSAGE(has(batch, "rows per global batch: expected 6, found 5"), batch);
    sampler rank({.rows = 30, .batch = 5, .key = {8}});
    CHECK_THROWS_AS(rank.restore(saved, ""), data_error);
}

TEST_CASE("sampler: too few rows for one step break the contract") {
    CHECK_THROWS_AS(sampler({.rows = 7, .batch = 4, .rank = 0, .ranks = 2}), contract_violation);
    CHECK_THROWS_AS(sampler({.rows = 7, .batch = 1, .rank = 2, .ranks = 2}), contract_violation);
    CHECK_THROWS_AS(sampler({.rows = 7, .batch = std::size_t{1} << 63, .rank = 0, .ranks = 2}), contract_violation);
    const std::string message = message_of<contract_violation>([] { sampler({.rows = 7, .batch = 4, .ranks = 2}); });
    CHECK_MESSAGE(has(message, "batch is 4; it must be from 1 to 3 (rows: 7, ranks: 2)"), message);
}
