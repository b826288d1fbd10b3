#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/gossip_frames.hpp>
#include <rill/protocol/detail/gossip_links.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A round of gossip that sends what `codec`, a `DifferenceCompressor`, makes of the model, and moves the model once
/// all has come. `row`: who mixes with whom. `head`: of this rank's message. `key`: draws how values are rounded.
/// `list(rank, weight)` is told of each term, by rank.
template <class Net, class T, class Codec, class List>
void mix_differences(const session<Net>& of, gossip_links<Net>& links, const mixing_row& row, const wire::header& head,
                     std::span<T> values, Codec& codec, random_key key, arena& memory, List&& list) {
    using index = typename Codec::index_type;
    constexpr coding_set among = codings_of<Codec>;
    require_finite(links, std::span<const T>(values), std::span<const T>(values));
    codec.begin(head.number);
    const stream_view<T, index> sent = codec.encode(std::span<const T>(values));
    const coding codes = codec.codings().contribution;
    const bool is_view = among.has_only_views() || codes.is_view();
    byte_pieces frame = view_frame(head, sent, links.header_room());
    if constexpr (!among.has_only_views())
        if (!is_view) frame = byte_pieces(coded_frame<among>(head, sent, codes, key, memory));
    links.begin();
    for (const rank_t peer : row.receivers) links.send(peer, frame);
    links.receive(row.senders);

    const auto content = [&](frame_reader frames) {
        const auto view = content_of<among>(frames.template next<T, index>().with(codes.own), codec.room());
        wire::detail::require(view.range() == sent.range(), "it is of another size");
        return view;
    };
    const auto add_own = [&] {
        codec.collect(is_view ? sent : content(frame_reader(frame)), row.own_weight, true);
        list(of.rank(), row.own_weight);
    };
    bool has_own = false;
    for (std::size_t i = 0; i < links.received().size(); ++i) {
        const auto& got = links.received()[i];
        if (!has_own && got.source() > of.rank()) has_own = (add_own(), true);
        read_from(links, got.source(), [&] {
            codec.collect(content(frames_of<T>(of, links, got, head, codec)), row.senders[i].weight, false);
        });
        list(got.source(), row.senders[i].weight);
    }
    if (!has_own) add_own();
    links.release();
    links.finish();
    codec.apply(values);
}

}}}  // namespace rill::RILL_ABI::detail
