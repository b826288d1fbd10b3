#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/config.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/data_error.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A codec with state to save, as error feedback has its residual. A `restore` that throws changes nothing.
template <class C>
concept PersistentCodec =
    requires(const C& constant, C& codec, checkpoint::writer& out, const checkpoint& in, const std::string& name) {
        constant.save(out, name);
        codec.restore(in, name);
    };

namespace detail {

template <class Codec, class Writer>
void save_codec(const Codec& codec, Writer& out, const std::string& name) {
    if constexpr (PersistentCodec<Codec>) codec.save(out, name);
}
/// Throws `data_error`, and changes nothing, if only one of the file and the codec has a state: what a residual holds
/// would be lost.
template <class Codec, class Reader>
void restore_codec(Codec& codec, const Reader& in, const std::string& name) {
    if constexpr (PersistentCodec<Codec>) {
        codec.restore(in, name);
    } else if (const std::string saved = in.first_with_prefix(name + "."); !saved.empty()) {
        throw data_error(in.path(), "section \"" + saved + "\"", "no state of a codec, since this one has none",
                         "the state of another");
    }
}

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
        detail::save_codec(codec, out, std::string(prefix) + "codec");
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        Descent restored = optimizer;
        restored.restore(in, prefix);
        detail::restore_codec(codec, in, std::string(prefix) + "codec");
        optimizer = std::move(restored);
    }
};

}}}  // namespace rill::RILL_ABI::train
