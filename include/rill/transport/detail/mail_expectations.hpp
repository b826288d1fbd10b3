#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A message that this rank will receive, and the memory where it may be put.
struct expectation {
    rank_t peer = no_rank;
    channel on{};
    byte_span targets[byte_pieces::most]{};
    std::size_t count = 0;

    expectation(rank_t from, channel which, std::span<const byte_span> places)
        : peer(from), on(which), count(places.size() <= byte_pieces::most ? places.size() : 0) {
        std::copy_n(places.begin(), count, targets);
    }

    std::span<const byte_span> places() const { return {targets, count}; }
    bool has_room_for(std::size_t size) const { return count != 0 && size_bytes(places()) == size; }
};

/// The expectations whose messages have neither arrived nor been announced, in order.
class expectations {
  public:
    void add(const expectation& next) { waiting_.push_back(next); }

    std::optional<expectation> take(rank_t peer, channel on) {
        const auto is_it = [&](const expectation& e) { return e.peer == peer && e.on == on; };
        const auto found = std::find_if(waiting_.begin(), waiting_.end(), is_it);
        if (found == waiting_.end()) return std::nullopt;
        const expectation taken = *found;
        waiting_.erase(found);
        return taken;
    }

    template <class Which>
    void remove(Which which) noexcept {
        std::erase_if(waiting_, which);
    }

  private:
    std::vector<expectation> waiting_;
};

}}}  // namespace rill::RILL_ABI::mail
