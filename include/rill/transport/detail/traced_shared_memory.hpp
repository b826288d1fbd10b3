#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

template <Transport Net>
class traced;

namespace detail {

/// What a traced transport offers only where the inner one shares memory: the inner one's window, whose waits are
/// recorded.
template <class Net>
struct traced_shared_memory {};

template <SharedMemoryTransport Net>
struct traced_shared_memory<Net> {
    class window : public Net::window {
      public:
        window(const traced<Net>& net, std::uint64_t context)
            : Net::window(net.inner().share(context)), net_(&net), on_{.context = context, .tag = 0} {}

        bool has_room(rank_t peer, std::uint64_t number, deadline until) {
            const auto waiting = net_->waiting("wait for room", peer, on_);
            return Net::window::has_room(peer, number, until);
        }
        const exposure* exposed(rank_t peer, const call_signature& call, deadline until) {
            const auto waiting = net_->waiting("wait for memory", peer, on_);
            return Net::window::exposed(peer, call, until);
        }
        bool has_left(rank_t peer, std::uint64_t number, deadline until) {
            const auto waiting = net_->waiting("wait for reader", peer, on_);
            return Net::window::has_left(peer, number, until);
        }

      private:
        const traced<Net>* net_;
        channel on_;
    };
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
