#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/selection.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/option_range.hpp>
#include <rill/kernel/threshold.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps all entries whose magnitude is at least `limit`, which is rounded to the elements' type: to the nearest
/// floating-point number, or up to an integer. `bind` gives a model of `Compressor`. Cost: one pass. Throws
/// `invalid_value`, which names the coordinate, for a NaN.
struct threshold {
    double limit = 0;

    static constexpr const char* name = "threshold";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;  // the limit bounds what is left out

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const threshold& policy, std::size_t dimension)
            : selection<T, Index>(dimension), limit_(limit_of(policy.limit)) {}
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t count = kernel::threshold(input, limit_, found_);
            std::copy_n(found_.begin(), count, this->room(count).begin());
            return this->take(count, input, executor);
        }

      private:
        static T limit_of(double limit) {
            rill::detail::require_option(rill::detail::is_finite(limit) && limit >= 0, "compress::threshold: limit",
                                         limit, "finite and at least 0");
            if constexpr (std::integral<T>) {
                limit = rill::detail::round_up(limit);
                rill::detail::require_option(limit < 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1),
                                             "compress::threshold: limit", limit,
                                             "at most the largest number of the elements' type");
            }
            return static_cast<T>(limit);
        }

        T limit_;
        aligned_vector<Index> found_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<threshold>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const threshold&, const threshold&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
