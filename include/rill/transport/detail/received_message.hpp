#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A received message. Its pieces lie in the sender's memory, in the buffer that was handed over, or in memory that the
/// transport reuses. Its destructor releases them, so that the sender can go on. `Owner`: points to what has
/// `release(node)`.
template <class Owner, class Node>
class received_message {
  public:
    received_message(Owner by, Node& taken) : owner_(std::move(by)), node_(&taken) {}
    received_message(received_message&& other) noexcept : owner_(std::move(other.owner_)), node_(other.node_) {
        other.node_ = nullptr;
    }
    received_message& operator=(received_message&& other) noexcept {
        received_message moved(std::move(other));
        std::swap(owner_, moved.owner_);
        std::swap(node_, moved.node_);
        return *this;
    }
    ~received_message() {
        if (owner_ != nullptr && node_ != nullptr) owner_->release(*node_);
    }

    rank_t source() const { return node_->source; }
    byte_pieces pieces() const { return node_->pieces; }

  private:
    Owner owner_;
    Node* node_;  ///< null: moved from
};

}}}  // namespace rill::RILL_ABI::detail
