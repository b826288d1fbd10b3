#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/node_handle.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A received message. Its pieces lie in the sender's memory, in the buffer that was handed over, or in memory that the
/// transport reuses. Its destructor releases them, so that the sender can go on. `Owner`: points to what has
/// `release(node)`.
template <class Owner, class Node>
class received_message {
  public:
    received_message(Owner by, Node& taken) : node_(&taken, {std::move(by)}) {}

    rank_t source() const { return node_->source; }
    byte_pieces pieces() const { return node_->pieces; }

  private:
    struct releaser {
        Owner owner{};
        /// A node has an owner. GCC does not see that, and would warn of a null pointer where programs include this.
        void operator()(Node& read) const noexcept {
            if (owner != nullptr) owner->release(read);
        }
    };

    node_handle<Node, releaser> node_;
};

}}}  // namespace rill::RILL_ABI::detail
