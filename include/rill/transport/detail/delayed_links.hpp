#pragma once

#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/delays.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The links over which a rank sends: one for all its peers, or one to each. Messages occupy a link one after the
/// other, in the order of `reserve`.
class delayed_links {
  public:
    /// One link to all peers.
    delayed_links(const delays& shared, rank_t rank) : links_(1), latencies_to_here_{shared.latency} {
        require_option(shared.latency.ns >= 0, "delays: latency (ns)", shared.latency.ns, "at least 0", rank);
        links_[0].properties = {shared.latency, shared.bandwidth};
    }
    /// A link to each of `size` ranks.
    template <LinkModel Links>
    delayed_links(const Links& links, rank_t rank, int size)
        : links_(static_cast<std::size_t>(size)), latencies_to_here_(static_cast<std::size_t>(size)) {
        for (rank_t peer = 0; peer < size; ++peer) {
            if (peer == rank) continue;
            const auto at = static_cast<std::size_t>(peer);
            const network_link there = links_[at].properties = links(rank, peer);
            if (there.latency.ns < 0)
                refuse_option(text_of({"delayed: latency (ns) of the link to rank ", peer}),
                              spelled_value(there.latency.ns), "at least 0", rank);
            latencies_to_here_[at] = static_cast<network_link>(links(peer, rank)).latency;
        }
    }

    /// When a message begins and ends to occupy its link, and when it is due.
    struct slot {
        time_point start{}, end{}, due{};
    };

    slot reserve(time_point now, rank_t peer, std::size_t bytes) {
        link& way = links_[place(peer, links_.size())];
        const duration length = transfer_time(bytes, way.properties.bandwidth);
        std::int64_t free_at = way.free_at.load(std::memory_order_relaxed);
        time_point start, end;
        do {
            start = std::max(now, time_point{free_at});
            end = start + length;
        } while (!way.free_at.compare_exchange_weak(free_at, end.ns, std::memory_order_relaxed));
        return {start, end, end + way.properties.latency};
    }

    /// Frees the slot of a message that was not sent after all, unless another message has reserved its link since.
    void give_back(rank_t peer, const slot& unused) {
        std::int64_t free_at = unused.end.ns;
        links_[place(peer, links_.size())].free_at.compare_exchange_strong(free_at, unused.start.ns,
                                                                           std::memory_order_relaxed);
    }

    /// Of the link from `peer` to this rank.
    duration latency_from(rank_t peer) const { return latencies_to_here_[place(peer, latencies_to_here_.size())]; }

  private:
    struct link {
        network_link properties{};
        std::atomic<std::int64_t> free_at{0};
    };

    static std::size_t place(rank_t peer, std::size_t count) { return count == 1 ? 0 : static_cast<std::size_t>(peer); }

    std::vector<link> links_;
    std::vector<duration> latencies_to_here_;
};

}}}  // namespace rill::RILL_ABI::detail
