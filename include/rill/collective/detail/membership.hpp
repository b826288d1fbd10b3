#pragma once

#include <rill/collective/detail/loans.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill::inline RILL_ABI::detail {

/// A context from its making to its end, also when the handshake throws.
template <Transport Net>
struct open_context {
    explicit open_context(Net& of) : net(of), number(of.next_context(0)) {}
    open_context(const open_context&) = delete;
    open_context& operator=(const open_context&) = delete;
    ~open_context() { net.close(number); }

    Net& net;
    std::uint64_t number;
};

/// What the lanes of a group share.
template <Transport Net, Topology Shape>
struct membership {
    open_context<Net> context;
    Shape shape;
    group_options options;
    std::uint64_t last_number = 0;  ///< of the operations called or started so far
    loans lent{};
};

}  // namespace rill::inline RILL_ABI::detail
