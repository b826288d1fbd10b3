// What the messages of a round of gossip have in common, whatever codec they are of.
#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/detail/mixing_defect.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/gossip_links.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace detail {

inline constexpr message_kind gossip_mixes{"gossip", 1};

/// Throws `contract_violation`, which ends the gossip, if a mixing has written a row that cannot be mixed by.
template <class Net>
void require_row(const gossip_links<Net>& links, const mixing_row& row, const session<Net>& of) {
    if (const mixing_defect defect = find_defect(row, of.rank(), of.size())) [[unlikely]]
        throw contract_violation(
            text_of({"rill: gossip (round ", links.round(), "): the mixing's row of rank ", of.rank(),
                     " is wrong: ", defect.what, defect.peer == no_rank ? "" : ": rank ",
                     defect.peer == no_rank ? std::string() : std::to_string(defect.peer),
                     "; topology::verify_mixing finds such rows beforehand"}));
}

/// Eight bits for each of a codec's first eight options, so that ranks which differ learn in what.
template <class Codec>
std::uint64_t option_bits(const Codec& codec) {
    std::uint64_t bits = 0;
    unsigned at = 0;
    if constexpr (HasOptions<Codec>)
        codec.visit_options([&](const char*, auto value) {
            if (at < 64) bits |= (mix64(std::bit_cast<std::uint64_t>(static_cast<double>(value))) >> 56U) << at;
            at += 8;
        });
    return bits;
}
/// Writes what a message says of the codec that has made it, and of the type of the elements.
template <class T, class Codec>
void write_codec(const Codec& codec, wire::header& head) {
    const std::uint64_t bits = option_bits(codec);
    head.call = option_hash(mix64(fingerprint_of(codec), static_cast<std::uint64_t>(element_type_of<T>)));
    head.age = static_cast<std::uint32_t>(bits);
    head.contributors = static_cast<std::uint32_t>(bits >> 32U);
}
/// In what a message is of another codec or another type of elements than this rank's; empty if in nothing.
template <class T, class Codec>
std::string codec_difference(const Codec& codec, const wire::header& theirs) {
    wire::header own;
    write_codec<T>(codec, own);
    if (theirs.call == own.call) return {};
    if (theirs.element != element_type_of<T>) return "another type of elements";
    const std::uint64_t differ = option_bits(codec) ^ (theirs.age | std::uint64_t{theirs.contributors} << 32U);
    std::string found = "another codec";
    unsigned at = 0;
    if constexpr (HasOptions<Codec>)
        codec.visit_options([&](const char* name, auto) {
            if (at < 64 && (differ >> at & 0xFFU) != 0 && found == "another codec")
                found = text_of({"another ", name, " of its codec"});
            at += 8;
        });
    return found;
}

/// The frames of a message, which must be of this round, and of a model and a codec like this rank's.
template <class T, class Net, class Codec>
frame_reader frames_of(const session<Net>& of, const gossip_links<Net>& links, const typename Net::message& got,
                       const wire::header& own, const Codec& codec) {
    const frame_reader frames(got.pieces());
    const wire::header head = frames.peek();
    of.require_own(head);
    wire::detail::require(head.kind == own.kind, "it is of another protocol");
    const auto differ = [&](const std::string& how) {
        links.scene().fail(failure::mismatch, got.source(), of.rank(), {"rank ", got.source(), " mixes ", how});
    };
    if (head.number != own.number)
        differ(text_of({"round ", head.number, ", rank ", of.rank(), " round ", own.number}));
    if (head.dimension != own.dimension)
        differ(text_of({"a model of ", head.dimension, " values, rank ", of.rank(), " one of ", own.dimension}));
    if (head.call != own.call) differ(text_of({"with ", codec_difference<T>(codec, head), " than rank ", of.rank()}));
    return frames;
}

/// Refuses `chosen` values that are not finite, by their place among `values`.
template <class Links, class T>
void require_finite(const Links& links, std::span<const T> chosen, std::span<const T> values) {
    if (!kernel::find_non_finite(chosen)) return;
    const std::size_t coordinate = kernel::find_non_finite(values).value_or(0);
    throw_error(
        links.scene().of_self({" has a value that is not finite at coordinate ", coordinate}, failure::invalid_value));
}

}}}  // namespace rill::RILL_ABI::detail
