#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

/// Records a span called `name` in the rank's trace until the result is destroyed, on a transport that records
/// (`traced`). On other transports it does nothing and costs nothing. `name` must live as long as the trace.
template <class Net>
[[nodiscard]] auto named_span([[maybe_unused]] const Net& net, [[maybe_unused]] const char* name) {
    if constexpr (TracedTransport<Net>)
        return net.span(name);
    else
        return nullptr;
}

}}  // namespace rill::RILL_ABI
