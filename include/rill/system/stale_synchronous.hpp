#pragma once

#include <rill/core/config.hpp>
#include <rill/protocol/server_options.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/server_replica.hpp>

#include <cstdint>
#include <limits>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `servers`: the last ranks, each with a part of the model; `dedicated`: they do nothing else. `staleness`: by how
/// many gradients a worker may lead the slowest one.
struct stale_synchronous_options {
    int servers = 1;
    bool dedicated = true;
    std::uint32_t staleness = 3;
};

/// As a staleness: no worker waits for another one (BAP).
inline constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

/// What `stale_synchronous` returns.
template <class Optimizer, class Rate>
using stale_synchronous_plan = train::server_replica<straggler::bounded, train::descent<Optimizer, Rate>>;

/// Stale-synchronous parallel training on a parameter server (Ho et al. 2013): a plan for
/// `train::asynchronous_trainer`. `rate` multiplies each gradient, which moves the model as it arrives; where all W
/// workers take part, W of them make about one step of bulk-synchronous training at W times the rate.
template <class Optimizer, class Rate>
constexpr stale_synchronous_plan<Optimizer, Rate> stale_synchronous(const stale_synchronous_options& chosen,
                                                                    const Optimizer& optimizer, const Rate& rate) {
    return {{.servers = chosen.servers, .dedicated = chosen.dedicated}, {chosen.staleness}, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems
