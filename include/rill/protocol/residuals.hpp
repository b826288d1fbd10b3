#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

namespace detail {

inline constexpr message_kind residual_kind{"residual of a rank that leaves", 1};

/// A codec that keeps a residual, itself or in the codec that it is built on.
template <class Codec>
concept KeepsResidual = ResidualCompressor<Codec> || requires(const Codec& codec) { codec.inner().residual()[0]; };

template <class Codec>
auto& residual_keeper(Codec& codec) {
    if constexpr (ResidualCompressor<Codec>)
        return codec;
    else
        return codec.inner();
}
template <class Codec>
auto residual_of(const Codec& codec) {
    return residual_keeper(codec).residual();
}

}  // namespace detail

/// The Euclidean norm of what a codec has left out: of a rank that dies, what is lost. 0 of codecs that keep nothing.
template <class Codec>
double residual_norm(const Codec& codec) {
    double squares = 0;
    if constexpr (detail::KeepsResidual<Codec>)
        for (const auto value : detail::residual_of(codec))
            squares += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(squares);
}

/// Hands the residual of a rank that leaves to a rank that stays, so that no part of a gradient is lost. Both name the
/// channel, which serves nothing else. Call it after the last step: what the codec keeps from then on is lost.
/// Residuals are never copied otherwise: a rank that joins begins with zero, and that of a rank that dies is lost.
/// Returns whether the message has been taken before the deadline. Cost: N elements.
template <Transport Net, detail::KeepsResidual Codec>
bool give_residual(Net& net, rank_t to, channel on, const Codec& codec, deadline until) {
    const auto residual = detail::residual_of(codec);
    using T = std::remove_cvref_t<decltype(residual[0])>;
    buffer message = detail::kept_room(residual.size_bytes());
    detail::append_frame(message, {.kind = detail::residual_kind, .context = on.context},
                         detail::whole(std::span<const T>(residual)));
    return net.post(to, on, std::move(message), until);
}

/// Adds the residual of a rank that leaves to that of this rank. Returns false if nothing has come in time. Errors:
/// `protocol_error` if it is of another dimension or type, `invalid_value` if the sum is not finite; the codec is then
/// as it was.
template <Transport Net, detail::KeepsResidual Codec>
bool take_residual(Net& net, rank_t from, channel on, Codec& codec, deadline until) {
    using T = std::remove_cvref_t<decltype(detail::residual_of(codec)[0])>;
    const auto got = net.receive(from, on, until);
    if (!got) return false;
    frame_reader frames(got->pieces());
    wire::detail::require(frames.peek().kind == detail::residual_kind, "it is no residual");
    const std::span<const T> more = detail::next_values<T>(frames);
    if (more.size() != codec.dimension())
        throw protocol_error(text_of({"take_residual: the residual of rank ", from, " has ", more.size(),
                                      " elements, and that of rank ", net.rank(), " has ", codec.dimension()}));
    detail::residual_keeper(codec).add_to_residual(more);
    return true;
}

}}  // namespace rill::RILL_ABI
