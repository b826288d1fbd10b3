#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_table.hpp>

#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::simulated::detail {

/// The directed links that have been used, and how long messages take on them.
class link_table {
  public:
    explicit link_table(const network& chosen) : network_(chosen) {}

    /// When a message that is posted now arrives; the link is occupied from then on.
    time_point arrival(time_point now, rank_t source, rank_t receiver, std::size_t bytes) {
        link& used = links_[{source, receiver}];
        const time_point start = used.free_at > now ? used.free_at : now;
        used.free_at = start + network_.transfer(bytes);
        const time_point due = used.free_at + network_.delay(source, receiver, used.messages++);
        if (used.last_arrival < due) used.last_arrival = due;
        return used.last_arrival;
    }

  private:
    struct link_key {
        rank_t source = no_rank;
        rank_t receiver = no_rank;

        std::size_t hash() const { return mix64(static_cast<unsigned>(source), static_cast<unsigned>(receiver)); }
        friend bool operator==(const link_key&, const link_key&) = default;
    };
    struct link {
        time_point free_at{};
        time_point last_arrival{};
        std::uint64_t messages = 0;
    };

    network network_;
    table<link_key, link> links_;
};

}  // namespace rill::inline RILL_ABI::simulated::detail
