#pragma once

#include <rill/collective/detail/long_wait.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/session/session.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The waits of rounds. A wait that has lasted for half of the timeout is announced to the others, so that a rank that
/// gives up can find where the standstill begins.
template <Transport Net>
class round_blame {
  public:
    explicit round_blame(const session<Net>& of)
        : net_(&of.net()), context_(of.context()), waits_(of.waits()), timeout_(of.timeout()) {}

    duration timeout() const { return timeout_; }

    void tell(rank_t waits_for) { net_->announce(waits_, long_wait{.peer = waits_for}.announced_in(only_call)); }
    void tell_nothing() { tell(no_rank); }

    /// The notice about a wait for `peer` in round `round` during which the timeout has passed. If the standstill
    /// begins with this wait, the message says by `of_peer` what the peer did not do. `of_all` ends the message.
    abort_notice notice(std::uint64_t round, rank_t peer, const char* of_peer, const std::string& of_all = {}) const {
        rank_t waiter = net_->rank();
        const time_point until = net_->now() + timeout_ / 8;
        for (int passed = 0; passed < net_->size(); ++passed) {
            const auto said = net_->inquire(peer, waits_, only_call, until);
            if (!said || said->kind == operation::departure) break;
            const rank_t next = long_wait::from(*said).peer;
            if (next == no_rank) break;
            waiter = std::exchange(peer, next);
        }
        return {.context = context_,
                .operation = round,
                .kind = failure::timeout,
                .culprit = peer,
                .other = waiter,
                .reason = "round " + std::to_string(round) + ": rank " + std::to_string(waiter) + " waited " +
                          std::to_string(timeout_.seconds()) + " s for rank " + std::to_string(peer) +
                          (waiter == net_->rank() ? of_peer : "") + of_all};
    }

  private:
    static constexpr std::uint64_t only_call = 1;

    Net* net_;
    std::uint64_t context_;
    std::uint64_t waits_;
    duration timeout_;
};

}}}  // namespace rill::RILL_ABI::detail
