#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/server_options.hpp>

#include <algorithm>
#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Training with a model that lies in parts on servers (`parameter_server`), on dedicated ranks or on all.
///
/// Models `ReplicaPlan`. The timeout is that of the trainer's `group_options`, and `patience` at least twice as long.
/// The data belong to the workers, the first `servers.workers(net.size())` ranks. A dedicated server steps once: that
/// step is over when the run is, computes nothing, and leaves `parameters()` as they were at first.
template <Staleness Age, class Move>
struct server_replica {
    static constexpr const char* name = "server_replica";

    server_options servers{};
    Age staleness{};
    Move update{};

    template <std::floating_point T = float, class Net>
    parameter_server<Net, T, Age, Move> bind(Net& net, std::span<const T> first,
                                             const group_options& options = {}) const {
        server_options own = servers;
        own.timeout = options.timeout;
        own.patience = std::max(own.patience, own.timeout + own.timeout);
        return {net, own, staleness, update, first};
    }
};

template <class A, class M>
server_replica(server_options, A, M) -> server_replica<A, M>;

}}}  // namespace rill::RILL_ABI::train
