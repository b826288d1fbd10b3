#pragma once

#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI {

/// Which ranks of a parameter server hold the model. They must be the same on all ranks, which is checked.
struct server_options {
    int servers = 1;        ///< the last ranks, each with a part of the model
    bool dedicated = true;  ///< servers do nothing else; false: they work too, and serve in a second activity
    /// How long a pull waits for slower workers. To find a server that does not answer may take a quarter of it more.
    duration timeout = seconds(60);
    /// How long a server waits to hear from any worker, all of which may be computing, before it ends the run.
    duration patience = seconds(3600);

    /// How many of `size` ranks work: the first ones.
    constexpr int workers(int size) const { return dedicated ? size - servers : size; }

    /// Throws `contract_violation` unless the options suit `size` ranks; `rank` is the caller's, for the message.
    void require_options(int size, rank_t rank) const {
        detail::require_option(servers >= 1, "parameter_server: servers", servers, "at least 1", rank);
        detail::require_option(servers <= size, "parameter_server: servers", servers, "at most the number of ranks",
                               rank);
        detail::require_option(!dedicated || servers < size, "parameter_server: servers", servers,
                               "below the number of ranks where they are dedicated, so that one works", rank);
        detail::require_option(timeout.ns > 0, "parameter_server: timeout (ns)", timeout.ns, "above 0", rank);
        detail::require_option(patience >= timeout, "parameter_server: patience (ns)", patience.ns,
                               "at least the timeout", rank);
    }
    friend constexpr bool operator==(const server_options&, const server_options&) = default;
};

}}  // namespace rill::RILL_ABI
