#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/selection.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/aligned_vector.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/error.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/text.hpp>
#include <rill/kernel/select.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps the k rows of largest Euclidean norm, each as a whole, zeros too: k = `count`, or ⌈density · rows⌉ if that
/// is 0. Row r has the `columns` coordinates from r · `columns` on; the last row may be shorter. It is meant for models
/// with a vector per word, item or class; with the index coding `whole_rows` one index travels for each row.
///
/// `bind` gives a model of `Compressor`. Cost: a pass over the input, and `top_k` of the rows. Memory: 8 bytes for each
/// row. Determinism: squares are added up in double precision in the order of coordinates; ties go to the lower row.
/// Rows of `double` whose squares add up to more than 1.8e308 tie. Throws `invalid_value`, which names the coordinate,
/// for a NaN.
struct row_top_k {
    std::size_t columns = 1;  ///< entries of a row
    double density = 0;       ///< rows that are kept of all, in (0, 1]
    std::size_t count = 0;    ///< rows

    static constexpr const char* name = "row_top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    /// How many rows are kept of `all`.
    std::size_t rows(std::size_t all) const {
        rill::detail::require_option(columns > 0, "compress::row_top_k: columns", columns, "at least 1");
        if (count != 0) return std::min(count, all);
        rill::detail::require_option(density > 0 && density <= 1, "compress::row_top_k: density", density,
                                     "above 0 and at most 1 where no count is given");
        return static_cast<std::size_t>(rill::detail::round_up(density * static_cast<double>(all)));
    }

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const row_top_k& policy, std::size_t dimension)
            : selection<T, Index>(dimension),
              columns_(policy.columns),
              squares_(columns_ == 0 ? 0 : dimension / columns_ + (dimension % columns_ != 0 ? 1 : 0)),
              rows_(policy.rows(squares_.size())) {}

        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            for (std::size_t r = 0; r < squares_.size(); ++r) squares_[r] = square_of(input, r);
            kernel::top_k(std::span<const double>(span_of(squares_)), rows_.size(), span_of(rows_), scratch_, executor);
            const auto indices = this->room(std::min(rows_.size() * columns_, input.size()));
            std::size_t at = 0;
            for (const Index row : rows_)
                for (std::size_t i = row * columns_; i < end_of(row, input.size()); ++i)
                    indices[at++] = static_cast<Index>(i);
            return this->take(at, input, executor);
        }

      private:
        std::size_t end_of(std::size_t row, std::size_t dimension) const {
            return std::min((row + 1) * columns_, dimension);
        }
        double square_of(std::span<const T> input, std::size_t row) const {
            double sum = 0;
            for (std::size_t i = row * columns_; i < end_of(row, input.size()); ++i)
                sum += static_cast<double>(input[i]) * static_cast<double>(input[i]);
            if (std::isnan(sum)) refuse(input, row);
            return sum;
        }
        [[noreturn, gnu::cold, gnu::noinline]] void refuse(std::span<const T> input, std::size_t row) const {
            std::size_t i = row * columns_;
            while (!std::isnan(static_cast<double>(input[i]))) ++i;
            throw invalid_value(text_of({"coordinate ", i, " is NaN"}));
        }

        std::size_t columns_;
        aligned_vector<double> squares_;
        aligned_vector<Index> rows_;
        kernel::select_scratch scratch_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<row_top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const row_top_k&, const row_top_k&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
