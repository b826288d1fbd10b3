#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many columns to add to a dataset, and the key that they are drawn by.
struct widening {
    std::size_t products = 0;  ///< of two different columns
    std::size_t probes = 0;    ///< a column or a product whose rows are permuted: the same values, no information
    random_key key{};

    friend constexpr bool operator==(const widening&, const widening&) = default;
};

namespace detail {

inline void add_products(dataset& wide, std::size_t columns, const widening& how) {
    random_sequence random(how.key.derive(0));
    std::vector<std::pair<std::size_t, std::size_t>> pairs(how.products);
    for (auto& [left, right] : pairs) {
        left = random.below(columns);
        right = (left + 1 + random.below(columns - 1)) % columns;
    }
    for (std::size_t r = 0; r < wide.rows; ++r) {
        float* const row = wide.features.data() + r * wide.columns;
        for (std::size_t i = 0; i < pairs.size(); ++i) row[columns + i] = row[pairs[i].first] * row[pairs[i].second];
    }
}

// Copies a cache line of columns at a time, because the elements of a column are far apart in memory.
inline void add_probes(dataset& wide, std::size_t first, const widening& how) {
    constexpr std::size_t at_once = 16;
    std::array<std::vector<float>, at_once> columns;
    for (std::size_t done = 0; done < how.probes; done += at_once) {
        const std::size_t count = std::min(at_once, how.probes - done);
        for (std::size_t i = 0; i < count; ++i) {
            random_sequence random(how.key.derive(1, done + i));
            const std::size_t source = random.below(first);
            columns[i].resize(wide.rows);
            for (std::size_t r = 0; r < wide.rows; ++r) columns[i][r] = wide.features[r * wide.columns + source];
            for (std::size_t left = wide.rows; left > 1; --left)
                std::swap(columns[i][left - 1], columns[i][random.below(left)]);
        }
        for (std::size_t r = 0; r < wide.rows; ++r)
            for (std::size_t i = 0; i < count; ++i) wide.features[r * wide.columns + first + done + i] = columns[i][r];
    }
}

}  // namespace detail

/// A copy with more columns: those of `data`, then products, then probes. GISETTE was made in this way from images of
/// digits (Guyon et al., NIPS 2003).
///
/// Determinism: a pure function of data and widening. Memory: the copy, and 64 bytes for each row.
inline dataset widen(const dataset& data, const widening& how) {
    RILL_EXPECTS(how.products == 0 || data.columns >= 2, "widen: two columns to multiply");
    RILL_EXPECTS(how.probes == 0 || data.columns >= 1, "widen: a column to make probes of");
    dataset wide{.rows = data.rows,
                 .columns = data.columns + how.products + how.probes,
                 .classes = data.classes,
                 .features = {},
                 .labels = data.labels};
    wide.features.resize(wide.rows * wide.columns);
    for (std::size_t r = 0; r < wide.rows; ++r) {
        const auto row = data.row(r);
        std::copy(row.begin(), row.end(), wide.features.data() + r * wide.columns);
    }
    if (how.products > 0) detail::add_products(wide, data.columns, how);
    detail::add_probes(wide, data.columns + how.products, how);
    return wide;
}

}}}  // namespace rill::RILL_ABI::train
