#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/saved_part.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A codec with state to save, as error feedback has its residual. `save` writes sections of the same names whatever
/// the codec holds. A `restore` that throws changes nothing.
template <class C>
concept PersistentCodec =
    requires(const C& constant, C& codec, checkpoint::writer& out, const checkpoint& in, const std::string& name) {
        constant.save(out, name);
        codec.restore(in, name);
    };

namespace detail {

/// Makes `codec` send `gradient` times `rate`. Codecs that can scale do so in the pass that they make anyway.
template <class Codec, std::floating_point T>
void scale_contribution(Codec& codec, std::span<T> gradient, T rate) {
    if constexpr (ScalingCompressor<Codec, T>)
        codec.scale_inputs(rate);
    else
        for (T& slope : gradient) slope *= rate;
}

}  // namespace detail

/// What a bound strategy with a codec saves: the codec's residual, if it has one, and the optimizer's state.
template <class Codec, class Descent>
struct compressed_state {
    Codec codec;
    Descent optimizer;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        optimizer.save(out, prefix);
        rill::detail::save_part(out, std::string(prefix) + "codec", codec);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        Descent restored = optimizer;
        restored.restore(in, prefix);
        rill::detail::restore_part(in, std::string(prefix) + "codec", codec);
        optimizer = std::move(restored);
    }
};

}}}  // namespace rill::RILL_ABI::train
