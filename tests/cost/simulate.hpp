// How long a collective takes in a simulated network when all ranks enter it at the same time.
#pragma once

#include <rill/collective/group.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace support {

struct outcome {
    rill::duration elapsed{};
    std::vector<rill::traffic> ranks;
};

/// `body(group)` returns its receipt; `starts` delays the entry of ranks.
template <class Shape, class Body>
outcome simulate(int ranks, const rill::simulated::network& net, const Shape& shape, Body&& body,
                 const std::vector<rill::duration>& starts = {}) {
    constexpr rill::time_point begin{rill::seconds(1).ns};
    outcome seen{.ranks = std::vector<rill::traffic>(static_cast<std::size_t>(ranks))};
    rill::simulated::run(ranks, net, [&](rill::simulated::endpoint& self) {
        rill::group workers{self, shape};
        const auto r = static_cast<std::size_t>(self.rank());
        self.sleep_until(begin + (starts.empty() ? rill::duration{} : starts[r]));
        seen.ranks[r] = body(workers).wire;
        seen.elapsed = std::max(seen.elapsed, self.now() - begin);
    });
    return seen;
}

}  // namespace support
