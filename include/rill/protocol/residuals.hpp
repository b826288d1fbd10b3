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
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

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

template <class... Codecs>
buffer room_for_residuals(const Codecs&... codecs) {
    return kept_room((residual_of(codecs).size_bytes() + ...));
}
/// `message`, and after it a frame for each residual.
template <class... Codecs>
buffer residual_message(buffer message, std::uint64_t context, const Codecs&... codecs) {
    const auto append = [&](auto residual) {
        using T = std::remove_cvref_t<decltype(residual[0])>;
        append_frame(message, {.kind = residual_kind, .context = context}, whole(std::span<const T>(residual)));
    };
    (append(residual_of(codecs)), ...);
    return message;
}
[[noreturn, gnu::cold]] inline void throw_other_codecs(const char* count, rank_t from, rank_t to) {
    throw protocol_error(
        text_of({"take_residual: rank ", from, " gives ", count, " residuals than rank ", to, " has codecs"}));
}
template <class Codec>
auto next_residual(frame_reader& frames, rank_t from, rank_t to, const Codec& codec) {
    using T = std::remove_cvref_t<decltype(residual_of(codec)[0])>;
    if (frames.done()) throw_other_codecs("fewer", from, to);
    wire::detail::require(frames.peek().kind == residual_kind, "it is no residual");
    const std::span<const T> more = next_values<T>(frames);
    if (more.size() != codec.dimension())
        throw protocol_error(text_of({"take_residual: the residual of rank ", from, " has ", more.size(),
                                      " elements, and that of rank ", to, " has ", codec.dimension()}));
    return more;
}
/// Adds each residual of a message to that of its codec; none if they are not those of such codecs.
template <class... Codecs>
void add_residuals(frame_reader& frames, rank_t from, rank_t to, Codecs&... codecs) {
    const std::tuple<decltype(next_residual(frames, from, to, codecs))...> all{
        next_residual(frames, from, to, codecs)...};
    if (!frames.done()) throw_other_codecs("more", from, to);
    std::apply([&](const auto&... more) { (residual_keeper(codecs).add_to_residual(more), ...); }, all);
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
    return net.post(to, on, detail::residual_message(detail::room_for_residuals(codec), on.context, codec), until);
}

/// Adds the residual of a rank that leaves to that of this rank. Returns false if nothing has come in time. Errors:
/// `protocol_error` if it is of another dimension or type, `invalid_value` if the sum is not finite; the codec is then
/// as it was.
template <Transport Net, detail::KeepsResidual Codec>
bool take_residual(Net& net, rank_t from, channel on, Codec& codec, deadline until) {
    const auto got = net.receive(from, on, until);
    if (!got) return false;
    frame_reader frames(got->pieces());
    detail::add_residuals(frames, from, net.rank(), codec);
    return true;
}

}}  // namespace rill::RILL_ABI
