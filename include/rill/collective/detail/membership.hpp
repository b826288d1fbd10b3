#pragma once

#include <rill/collective/detail/fused_all_reduce.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/session/session.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The two numbers of an operation. They differ after a group has gone back to an earlier count.
struct operation_numbers {
    std::uint64_t in_context = 0;  ///< on the wire and in errors: never decreases, so that all calls differ
    std::uint64_t counted = 0;     ///< in receipts and in the keys of random numbers

    constexpr operation_numbers next() const { return {in_context + 1, counted + 1}; }
    constexpr operation_numbers resumed_at(std::uint64_t number) const {
        return {std::max(in_context, number), number};
    }
};

template <class Commons, Transport Net>
Commons window_in(const session<Net>& of) {
    if constexpr (std::same_as<Commons, no_window>)
        return {};
    else
        return of.net().share(of.context());
}

/// What the lanes of a group share.
template <Transport Net, Topology Shape, Executor Exec>
struct membership {
    rill::session<Net> session;
    Shape shape;
    group_options options;
    [[no_unique_address]] Exec executor;
    operation_numbers last{};  ///< the numbers of the latest operation that was called or started
    void* crew = nullptr;      ///< runs the operations in the background, if there are any
    void (*wait_for_room)(void* crew, std::uint64_t) = nullptr;
    /// Shared before the handshake, so that no rank leaves the handshake before all ranks have the window.
    [[no_unique_address]] fused_window<Net, Shape> window = window_in<fused_window<Net, Shape>>(session);

    /// Waits until an operation may begin: all operations that began at least `calls_remembered / 2` numbers before it
    /// must be done. A rank that is ahead cannot have ended an operation that another rank has not entered. So the
    /// calls of all operations that any rank may ask about are still remembered.
    void make_room(std::uint64_t number) {
        if (wait_for_room != nullptr) wait_for_room(crew, number);
    }
};

}}}  // namespace rill::RILL_ABI::detail
