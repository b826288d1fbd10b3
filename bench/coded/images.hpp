#pragma once

#include <rill/train/dataset.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/select_classes.hpp>
#include <rill/train/widen.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace coded_bench {

/// The training rows, which are the first rows of what `images` makes, and the test rows, which follow them.
struct sample {
    rill::train::dataset training;
    rill::train::dataset test;
};

inline rill::train::dataset rows_of(const rill::train::dataset& all, std::size_t first, std::size_t count) {
    rill::train::dataset some{
        .rows = count, .columns = all.columns, .classes = all.classes, .features = {}, .labels = {}};
    const auto from = all.features.begin() + static_cast<std::ptrdiff_t>(first * all.columns);
    some.features.assign(from, from + static_cast<std::ptrdiff_t>(count * all.columns));
    const auto label = all.labels.begin() + static_cast<std::ptrdiff_t>(first);
    some.labels.assign(label, label + static_cast<std::ptrdiff_t>(count));
    return some;
}

/// GISETTE's stand-in: the 12,000 pullovers (class 2) and shirts (class 6) of Fashion-MNIST's training images, which
/// are hard to tell apart (a logistic regression on the pixels: 84 % right), with 5,000 columns: 784 pixels, 1,716
/// products of two, and 2,500 probes, half of all as in GISETTE. The first 6,552 rows are for training, as many as the
/// paper took; of the others there are at most `test_rows`.
inline sample images(const std::string& folder, std::size_t training_rows, std::size_t test_rows) {
    const rill::train::dataset both =
        rill::train::select_classes(rill::train::read_idx_dataset(folder + "/train-images-idx3-ubyte.gz",
                                                                  folder + "/train-labels-idx1-ubyte.gz", 10),
                                    {2, 6});
    const rill::train::dataset pixels = rows_of(both, 0, std::min(both.rows, training_rows + test_rows));
    const rill::train::dataset all =
        rill::train::widen(pixels, {.products = 2500 - pixels.columns, .probes = 2500, .key = {2021}});
    return {rows_of(all, 0, training_rows), rows_of(all, training_rows, all.rows - training_rows)};
}

}  // namespace coded_bench
