#pragma once

#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A node of a transport, or none; `Release` gets it when the handle ends. A `std::unique_ptr` with this deleter is
/// four times as many functions for the compiler.
template <class Node, class Release>
class node_handle {
  public:
    node_handle() = default;
    node_handle(Node* node, Release release) : node_(node), release_(std::move(release)) {}
    node_handle(node_handle&& other) noexcept : node_(other.take()), release_(std::move(other.release_)) {}
    node_handle& operator=(node_handle&& other) noexcept {
        if (this == &other) return *this;
        if (node_ != nullptr) release_(*node_);
        node_ = other.take();
        release_ = std::move(other.release_);
        return *this;
    }
    ~node_handle() {
        if (node_ != nullptr) release_(*node_);
    }

    Node* get() const noexcept { return node_; }
    Node* operator->() const noexcept { return node_; }
    const Release& releaser() const noexcept { return release_; }
    /// From now on the caller has the node.
    Node* take() noexcept {
        Node* const node = node_;
        node_ = nullptr;
        return node;
    }

  private:
    Node* node_ = nullptr;
    Release release_{};
};

}}}  // namespace rill::RILL_ABI::detail
