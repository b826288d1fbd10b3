#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_transfers.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Moves a message that arrives straight in the user's memory into memory of the pool. It never waits; a part that is
/// already being written can be moved only when its sender has sent it.
template <class Port>
class redirection {
  public:
    using transfers = mail::transfers<Port>;
    using node = typename transfers::node;

    redirection(transfers& of, node& n) : of_(of), node_(n), before_(n.parts) {
        node_.leaves = true;
        for (std::size_t i = before_.size(); i-- > 0;)  // last first: a part that arrives now matches an earlier one
            if (node_.requests[i]) of_.through_.cancel(node_.requests[i]);
        node_.parts.clear();
        of_.place_in_pool(node_);
    }
    redirection(const redirection&) = delete;
    redirection& operator=(const redirection&) = delete;
    ~redirection() { node_.leaves = false; }

    /// Tests the parts; true when the user's memory is free.
    bool look() {
        while (next_ < before_.size() && is_out(next_)) ++next_;
        return next_ == before_.size();
    }

  private:
    bool is_out(std::size_t i) {
        auto& request = node_.requests[i];
        const byte_span part = node_.parts[i];
        if (request) {
            const auto end = of_.through_.look(request);
            if constexpr (MonitoringPort<Port>)
                if (!end && of_.through_.move(request, part)) return true;
            if (!end) return false;
            if (end->cancelled) {
                request = of_.through_.receive_part(part.data(), part.size(), node_.source, node_.data_tag);
                return true;
            }
            of_.note_end(node_, end->size);
        }
        std::memcpy(part.data(), before_[i].data(), part.size());
        return true;
    }

    transfers& of_;
    node& node_;
    std::vector<byte_span> before_;
    std::size_t next_ = 0;
};

}}}  // namespace rill::RILL_ABI::mail
