#pragma once

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/selection.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/option_range.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/select.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/compressed_bsp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// The options of SparCML's top-k SGD.
struct sparcml_options {
    double density = 0.01;   ///< the share of all entries that each rank sends, in (0, 1]; unused where `bucket` is set
    int bits = 4;            ///< of a value in the copy phase, in which the folded parts are sent on: 2, 4 or 8
    int source_bits = 0;     ///< of a value that a rank contributes: 2, 4 or 8; 0: sent as it is
    std::size_t bucket = 0;  ///< consecutive entries of which each rank sends `keep`; 0: the largest of all entries
    std::size_t keep = 0;    ///< at least 1 and at most `bucket`

    friend constexpr bool operator==(const sparcml_options&, const sparcml_options&) = default;
};

/// The sparsifier of `sparcml`: the largest entries, of all or of each bucket, as its options say. Cost, determinism
/// and errors are those of `compress::top_k` and `compress::bucket_top_k`.
struct sparcml_selection {
    sparcml_options options{};

    static constexpr const char* name = "sparcml_selection";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector : public compress::selection<T, Index> {
      public:
        selector(const sparcml_selection& policy, std::size_t dimension)
            : compress::selection<T, Index>(dimension),
              bucket_(policy.options.bucket),
              count_(bucket_ > 0 ? policy.kept() : compress::top_k{policy.options.density}.entries(dimension)) {}

        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = bucket_ > 0 ? kernel::bucket_top_k_count(input.size(), bucket_, count_) : count_;
            const std::span<Index> room = this->room(most);
            const std::size_t chosen = bucket_ > 0
                                           ? kernel::bucket_top_k(input, bucket_, count_, room, scratch_, executor)
                                           : kernel::top_k(input, count_, room, scratch_, executor);
            return this->take(chosen, input, executor);
        }

      private:
        std::size_t bucket_;
        std::size_t count_;
        kernel::select_scratch scratch_;
    };

    friend constexpr bool operator==(const sparcml_selection&, const sparcml_selection&) = default;

  private:
    std::size_t kept() const {
        rill::detail::require_option(options.keep > 0 && options.keep <= options.bucket, "systems::sparcml: keep",
                                     options.keep, "at least 1 and at most the bucket");
        return options.keep;
    }
};

/// The value coding of what a rank contributes to `sparcml`: QSGD, or raw where no bits are given.
struct sparcml_source {
    int bits = 0;

    static constexpr const char* name = "sparcml_source";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = true;

    constexpr rill::coding coding() const {
        return bits == 0 ? compress::raw::coding() : compress::qsgd{.bits = bits}.coding();
    }
    friend constexpr bool operator==(sparcml_source, sparcml_source) = default;
};

/// A rank sends its largest entries, quantised where that is chosen; folded parts have quantised values.
using sparcml_codec = compress::error_feedback<
    compress::encoded<sparcml_selection, sparcml_source, compress::packed_gaps, compress::qsgd>>;

/// Quantised top-k SGD with error feedback (Renggli et al., SparCML, SC 2019, Algorithm 1) over SSAR_Split_allgather.
/// What is not selected stays at its rank; the rounding of the quantiser, which is unbiased, averages out. Deviations:
/// indices are packed; the owner of a part quantises the folded sum once; contributions are quantised only where
/// `source_bits` says so.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using sparcml_strategy = train::compressed_bsp<topology::split_allgather, sparcml_codec, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies each rank's gradient before it is compressed. Throws
/// `contract_violation` for options out of range, when the strategy is bound.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr sparcml_strategy<Optimizer, Rate, Clip> sparcml(const sparcml_options& chosen, const Optimizer& optimizer,
                                                          const Rate& rate, const Clip& clip = {}) {
    return {{}, {{{chosen}, {chosen.source_bits}, {}, {.bits = chosen.bits}}}, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems
