#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

/// Names what a rank does until the result is destroyed, on a transport that records it (`traced`): a span of its
/// trace. Elsewhere it is nothing and costs nothing. `name` lives as long as the trace.
template <class Net>
[[nodiscard]] auto named_span([[maybe_unused]] const Net& net, [[maybe_unused]] const char* name) {
    if constexpr (requires { net.span(name); })
        return net.span(name);
    else
        return nullptr;
}

}}  // namespace rill::RILL_ABI
