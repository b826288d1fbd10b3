#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/compressed_bsp.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// A rank sends its largest entries with exact values; folded parts have quantised values.
using sparcml_codec =
    compress::error_feedback<compress::encoded<compress::top_k, compress::raw, compress::packed_gaps, compress::qsgd>>;

/// Quantised top-k SGD with error feedback (Renggli et al., SparCML, SC 2019, Algorithm 1) over SSAR_Split_allgather.
/// Deviations: indices are packed; the owner of a part quantises the folded sum once; contributions are not quantised.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using sparcml_strategy = train::compressed_bsp<topology::split_allgather, sparcml_codec, Optimizer, Rate, Clip>;

/// `density`: the share of the entries that each rank sends, in (0, 1]. `bits` of a value in the copy phase, in which
/// the folded parts are sent on: 2, 4 or 8.
struct sparcml_options {
    double density = 0.01;
    int bits = 4;
};

/// Makes a strategy for `train::trainer`. `rate` multiplies each rank's gradient before it is compressed.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr sparcml_strategy<Optimizer, Rate, Clip> sparcml(const sparcml_options& chosen, const Optimizer& optimizer,
                                                          const Rate& rate, const Clip& clip = {}) {
    return {{}, {{{.density = chosen.density}, {}, {}, {.bits = chosen.bits}}}, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems
