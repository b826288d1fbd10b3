#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/frame_bytes.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Gives the sizes of a schedule's messages.
///
/// `begin(ranks, parts)` is called once. `bytes(sender, parts, kind)` returns the size of a message of the current
/// round.
template <class M>
concept MessageModel = requires(M& model, int count, rank_t rank, part_range parts, action kind) {
    model.begin(count, count);
    { model.bytes(rank, parts, kind) } -> std::convertible_to<std::uint64_t>;
};

/// A model whose messages depend on earlier ones: `receive(rank, transfers, kind)` tells it what a rank receives in the
/// round. Until `end_round()`, `bytes` uses the state before the round.
template <class M>
concept FollowingMessageModel =
    MessageModel<M> && requires(M& model, rank_t rank, std::span<const transfer> transfers, action kind) {
        model.receive(rank, transfers, kind);
        model.end_round();
    };

/// The messages of a dense collective over `dimension` elements. Models `MessageModel`.
///
/// Each message is one frame; sizes are exact. If a transport asks for chunks (`mpi`, large vectors), the collective
/// sends the same content in more messages than this model says.
template <Element T = float>
class dense_messages {
  public:
    explicit dense_messages(std::size_t dimension) : dimension_(dimension) {}

    void begin(int, int parts) { parts_ = static_cast<std::size_t>(parts); }
    std::uint64_t bytes(rank_t, part_range parts, action) const {
        return dense_frame_bytes<T>(
            split(dimension_, parts_, static_cast<std::size_t>(parts.first), static_cast<std::size_t>(parts.last))
                .size());
    }

  private:
    std::size_t dimension_;
    std::size_t parts_ = 1;
};

static_assert(MessageModel<dense_messages<>>);

}}}  // namespace rill::RILL_ABI::cost
