#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// One context of a view, on one rank's endpoint: what everything that ranks do together stands on.
///
/// Its numbers are derived from the transport's view and from `name`. Sessions of one name are told apart by their
/// order, which begins anew with each view, so that a rank that enters a view later arrives at the same numbers. All
/// ranks of the transport make the same sessions of a name in the same order. `net` must outlive it.
template <Transport Net>
class session {
  public:
    /// `timeout`: how long this rank waits for others.
    session(Net& net, std::string_view name, duration timeout)
        : net_(&net),
          timeout_(timeout),
          epoch_(epoch_of(net)),
          context_(net.next_context(mix64(fingerprint(name), epoch_))),
          waits_(mix64(context_, fingerprint("long waits"))) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() {
        net_->close(waits_);
        net_->close(context_);
    }

    Net& net() const { return *net_; }
    rank_t rank() const { return std::as_const(*net_).rank(); }
    int size() const { return std::as_const(*net_).size(); }
    duration timeout() const { return timeout_; }
    /// Of the view. All frames carry it.
    std::uint32_t epoch() const { return epoch_; }
    std::uint64_t context() const { return context_; }
    /// The context in which ranks announce long waits; see `detail::long_wait`.
    std::uint64_t waits() const { return waits_; }
    channel on(std::uint32_t tag) const { return {context_, tag}; }

    /// Throws `protocol_error` if a frame is of another epoch.
    void require_epoch(const wire::header& head) const {
        if (head.epoch != epoch_)
            throw protocol_error("it is of epoch " + std::to_string(head.epoch) + ", rank " + std::to_string(rank()) +
                                 " is in epoch " + std::to_string(epoch_));
    }

  private:
    Net* net_;
    duration timeout_;
    std::uint32_t epoch_;
    std::uint64_t context_;
    std::uint64_t waits_;
};

}}  // namespace rill::RILL_ABI
