// A transport that records from which memory messages are sent.
#pragma once

#include <rill/transport/in_process.hpp>
#include <rill/transport/subgroup.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace support {

class watched : public rill::subgroup<rill::in_process::endpoint> {
    using parent = rill::subgroup<rill::in_process::endpoint>;

  public:
    explicit watched(rill::in_process::endpoint& net) : parent(net, rill::view::all(net)) {}

    using parent::post;
    sending post(rill::rank_t peer, rill::channel on, const rill::byte_pieces& pieces) {
        for (std::size_t i = 1; i < pieces.count(); ++i) sent_.push_back(pieces[i]);  // without the header
        return parent::post(peer, on, pieces);
    }

    /// Payloads sent, and how many of them from outside `memory`. Resets the record.
    struct counts {
        std::size_t sent = 0;
        std::size_t from_elsewhere = 0;
    };
    template <class T>
    counts take(std::span<const std::span<const T>> memory) {
        counts result{.sent = sent_.size()};
        for (const rill::byte_view piece : sent_) {
            bool inside = false;
            for (const auto each : memory) {
                const rill::byte_view bytes = std::as_bytes(each);
                inside = inside ||
                         (bytes.data() <= piece.data() && piece.data() + piece.size() <= bytes.data() + bytes.size());
            }
            result.from_elsewhere += inside ? 0U : 1U;
        }
        sent_.clear();
        return result;
    }

  private:
    std::vector<rill::byte_view> sent_;
};

/// Runs `body(watched&)` on every rank.
template <class Body>
void on_watched_ranks(int ranks, Body body) {
    rill::in_process::run(ranks, [&](rill::in_process::endpoint& inner) {
        watched net(inner);
        body(net);
    });
}

}  // namespace support
