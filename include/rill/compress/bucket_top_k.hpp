#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/selection.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/option_range.hpp>
#include <rill/kernel/bucket_select.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps the `count` entries of largest magnitude of each `bucket` consecutive ones, so that every region of the model
/// gets its share. `bind` gives a model of `Compressor`. Determinism: ties go to the lower coordinate. Throws
/// `invalid_value`, which names the coordinate, for a NaN. Source: SparCML, section 8 (16 of 512).
struct bucket_top_k {
    std::size_t count = 0;
    std::size_t bucket = 512;  ///< entries

    static constexpr const char* name = "bucket_top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const bucket_top_k& policy, std::size_t dimension)
            : selection<T, Index>(dimension), count_(policy.count), bucket_(policy.bucket) {
            rill::detail::require_option(policy.bucket > 0, "compress::bucket_top_k: bucket", policy.bucket,
                                         "at least 1");
            rill::detail::require_option(policy.count > 0, "compress::bucket_top_k: count", policy.count, "at least 1");
        }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = kernel::bucket_top_k_count(input.size(), bucket_, count_);
            return this->take(kernel::bucket_top_k(input, bucket_, count_, this->room(most), scratch_, executor), input,
                              executor);
        }

      private:
        std::size_t count_;
        std::size_t bucket_;
        kernel::select_scratch scratch_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<bucket_top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const bucket_top_k&, const bucket_top_k&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
