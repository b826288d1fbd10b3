#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/selection.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/option_range.hpp>
#include <rill/kernel/select.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps the k entries of largest magnitude: k = `count`, or ⌈density · N⌉ if that is 0. `bind` gives a model of
/// `Compressor`. Cost: one to three passes over the input. Determinism: exact; ties go to the lower coordinate. Throws
/// `invalid_value`, which names the coordinate, for a NaN.
struct top_k {
    double density = 0;     ///< in (0, 1]
    std::size_t count = 0;  ///< entries

    static constexpr const char* name = "top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    std::size_t entries(std::size_t dimension) const {
        if (count != 0) return count;
        rill::detail::require_option(density > 0 && density <= 1, "compress::top_k: density", density,
                                     "above 0 and at most 1 where no count is given");
        return static_cast<std::size_t>(rill::detail::round_up(density * static_cast<double>(dimension)));
    }

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const top_k& policy, std::size_t dimension)
            : selection<T, Index>(dimension), count_(policy.entries(dimension)) {}
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = count_ < input.size() ? count_ : input.size();
            return this->take(kernel::top_k(input, count_, this->room(most), scratch_, executor), input, executor);
        }

      private:
        std::size_t count_;
        kernel::select_scratch scratch_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const top_k&, const top_k&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
