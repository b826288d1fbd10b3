// usage: bench_linear_gradient ROWS COLUMNS SAMPLES
//
// Prints the seconds of gradients of logistic regression on ROWS rows of 117 entries of COLUMNS columns, as often as
// grams of text occur: by `sparse_linear`, and by sorting all columns, making them unique and searching each entry.
#include <rill/train/sparse_linear.hpp>

#include "shared/text_like.hpp"
#include "shared/turns.hpp"

#include <rill/stream/stream.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace rill;

/// The gradient as one would write it first.
void sort_and_unique(std::span<const float> parameters, const train::sparse_batch& samples, stream<float>& output) {
    std::vector<std::uint32_t> columns;
    for (const std::uint32_t r : samples.rows) {
        const train::sparse_row row = samples.data.row(r);
        columns.insert(columns.end(), row.columns.begin(), row.columns.end());
    }
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    const auto room = output.make_sparse({0, parameters.size()}, columns.size() + 1);
    std::fill(room.values.begin(), room.values.end(), 0.0F);
    std::copy(columns.begin(), columns.end(), room.indices.begin());
    room.indices.back() = static_cast<std::uint32_t>(parameters.size() - 1);
    for (std::size_t r = 0; r < samples.rows.size(); ++r) {
        const train::sparse_row row = samples.data.row(samples.rows[r]);
        float score = parameters.back();
        for (const std::uint32_t column : row.columns) score += parameters[column];
        const float slope =
            samples.weight<float>(r) * train::logistic::slope(score, samples.data.labels[samples.rows[r]]);
        for (const std::uint32_t column : row.columns)
            room.values[static_cast<std::size_t>(std::lower_bound(columns.begin(), columns.end(), column) -
                                                 columns.begin())] += slope;
        room.values.back() += slope;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const std::size_t rows = std::strtoull(argv[1], nullptr, 10), columns = std::strtoull(argv[2], nullptr, 10);
    const train::sparse_dataset data = bench::text_like(rows, columns);
    std::vector<std::uint32_t> all(rows);
    std::iota(all.begin(), all.end(), 0U);
    const train::sparse_batch samples{data, all};
    train::sparse_linear<train::logistic> model(columns);
    const std::vector<float> parameters(model.dimension(), 0.01F);
    stream<float> gradient, expected;
    model.gradient(parameters, samples, gradient);
    sort_and_unique(parameters, samples, expected);
    if (!(gradient == expected)) {
        std::fprintf(stderr, "wrong: the two gradients have other bits\n");
        return 1;
    }
    bench::turns turns;
    turns.add("rill", [&] {
        model.gradient(parameters, samples, gradient);
        bench::keep(gradient.values().data());
    });
    turns.add("sort_and_unique", [&] {
        sort_and_unique(parameters, samples, expected);
        bench::keep(expected.values().data());
    });
    turns.run(std::atoi(argv[3]));
    turns.print("{\"seconds\": ", ", \"entries\": " + std::to_string(gradient.count()) + "}");
    return 0;
}
