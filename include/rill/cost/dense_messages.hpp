#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/frame_bytes.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// What the messages of a schedule weigh. `begin(ranks, parts)` is called once; `bytes(sender, parts, kind)` is a
/// message of the round at hand. A model whose messages depend on what came before has besides `receive(rank,
/// transfers, kind)`, what a rank gets in the round, and `end_round()`; until then `bytes` goes by what was before the
/// round.
template <class M>
concept MessageModel = requires(M& model, int count, rank_t rank, part_range parts, action kind) {
    model.begin(count, count);
    { model.bytes(rank, parts, kind) } -> std::convertible_to<std::uint64_t>;
};

/// The messages of a dense collective over `dimension` elements: one frame each, of exactly the bytes that it sends.
/// Not where a transport asks for chunks (`mpi`, large vectors): the same content then goes in more messages.
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
