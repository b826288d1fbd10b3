#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The ranks of a transport, to be asked what they have announced: one type for all transports.
class witnesses {
  public:
    template <Transport Net>
    explicit witnesses(Net& net)
        : net_(&net),
          self_(std::as_const(net).rank()),
          size_(std::as_const(net).size()),
          ask_(&ask_by<Net>),
          now_(&now_by<Net>) {}

    rank_t self() const { return self_; }
    int size() const { return size_; }
    time_point now() const { return now_(net_); }
    /// See `Transport::inquire`.
    std::optional<call_signature> ask(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) const {
        return ask_(net_, peer, context, number, until);
    }

  private:
    template <class Net>
    static std::optional<call_signature> ask_by(void* net, rank_t peer, std::uint64_t context, std::uint64_t number,
                                                deadline until) {
        return static_cast<Net*>(net)->inquire(peer, context, number, until);
    }
    template <class Net>
    static time_point now_by(const void* net) {
        return static_cast<const Net*>(net)->now();
    }

    void* net_;
    rank_t self_;
    int size_;
    std::optional<call_signature> (*ask_)(void*, rank_t, std::uint64_t, std::uint64_t, deadline);
    time_point (*now_)(const void*);
};

}}}  // namespace rill::RILL_ABI::detail
