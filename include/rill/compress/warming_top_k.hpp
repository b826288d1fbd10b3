#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/selection.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/option_range.hpp>
#include <rill/kernel/select.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps the entries of largest magnitude, many at first and fewer with each operation: their share falls from
/// `initial`, that of the group's first operation, to `density` by the same factor after each of the first `operations`
/// operations, and stays there. Early gradients change fast, and a residual of many of them delays training (Lin et
/// al., Deep Gradient Compression, ICLR 2018, section 3.3, which lowers the share once in an epoch).
///
/// `bind` gives a model of `Compressor`. Operations are those of the group that the codec is used in: of a training
/// strategy, its steps; of an elastic team, 2^20 for each step; of `overlapped_bsp`, the exchanges of all its buckets.
/// Cost, determinism and errors are those of `top_k`. Memory: `initial` · N entries.
struct warming_top_k {
    double density = 0;            ///< in (0, initial]: after the warm-up
    double initial = 0.25;         ///< in (0, 1]
    std::uint64_t operations = 0;  ///< length of the warm-up

    static constexpr const char* name = "warming_top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    /// The share of the entries that operation `number` sends. A group counts its operations from 1.
    double density_at(std::uint64_t number) const {
        const std::uint64_t earlier = number == 0 ? 0 : number - 1;
        if (earlier >= operations) return density;
        const double progress = static_cast<double>(earlier) / static_cast<double>(operations);
        return initial * rill::detail::power(density / initial, progress);
    }

    template <Element T, IndexType Index>
    class selector;

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<warming_top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const warming_top_k&, const warming_top_k&) = default;

  private:
    std::size_t entries(std::uint64_t number, std::size_t dimension) const {
        rill::detail::require_option(initial > 0 && initial <= 1, "compress::warming_top_k: initial", initial,
                                     "above 0 and at most 1");
        rill::detail::require_option(density > 0 && density <= initial, "compress::warming_top_k: density", density,
                                     "above 0 and at most the initial one");
        return top_k{.density = density_at(number)}.entries(dimension);
    }
};

template <Element T, IndexType Index>
class warming_top_k::selector : public selection<T, Index> {
  public:
    selector(const warming_top_k& policy, std::size_t dimension)
        : selection<T, Index>(dimension), policy_(policy), count_(policy.entries(0, dimension)) {}

    void begin(std::uint64_t number) { count_ = policy_.entries(number, this->dimension()); }

    template <Executor Exec>
    stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
        return this->take(kernel::top_k(input, count_, this->room(count_), scratch_, executor), input, executor);
    }

  private:
    warming_top_k policy_;
    std::size_t count_;
    kernel::select_scratch scratch_;
};

}}}  // namespace rill::RILL_ABI::compress
