#pragma once

#include <rill/collective/detail/long_wait.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Waits of rounds: what has lasted for half of the timeout is told to the others, so that whoever gives up finds the
/// rank where the standstill begins.
template <Transport Net>
class round_blame {
  public:
    /// `waits`: the context of long waits.
    round_blame(Net& net, std::uint64_t context, std::uint64_t waits, duration timeout)
        : net_(&net), context_(context), waits_(waits), timeout_(timeout) {}

    duration timeout() const { return timeout_; }

    void tell(rank_t waits_for) { net_->announce(waits_, long_wait{.peer = waits_for}.announced_in(only_call)); }
    void tell_nothing() { tell(no_rank); }

    /// Of a wait for `peer` in round `round`, which has taken all the timeout. If that is where the standstill begins,
    /// the message says `of_peer` what it did not do; `of_all` ends it.
    abort_notice notice(std::uint64_t round, rank_t peer, const char* of_peer, const std::string& of_all = {}) const {
        rank_t waiter = net_->rank();
        const time_point until = net_->now() + timeout_ / 8;
        for (int passed = 0; passed < net_->size(); ++passed) {
            const auto said = net_->inquire(peer, waits_, only_call, until);
            if (!said) break;
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
