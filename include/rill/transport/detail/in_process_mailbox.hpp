#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/chain.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/undelivered.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// A message between its post and its release. A borrowed message has two owners, the sender's `sending` and the
/// receiver; the last of them returns the node to the receiver's mailbox.
struct node {
    // The marks of a borrowed message. Marks are only added, so that one atomic operation tells each side what the
    // other has done before.
    static constexpr unsigned taken = 1;      ///< a receiver has taken it and reads
    static constexpr unsigned released = 2;   ///< the receiver has released it: the sender may reuse its bytes
    static constexpr unsigned abandoned = 4;  ///< the sender has abandoned it while the receiver reads
    static constexpr unsigned awaited = 8;    ///< the sender asks to be woken by the release

    rank_t source = no_rank;
    rank_t receiver = no_rank;
    channel on{};
    std::uint64_t arrival = 0;
    byte_pieces pieces{};
    buffer owned{};
    bool borrowed = false;
    std::atomic<unsigned> marks{0};
    node* next = nullptr;
    node* previous = nullptr;
};

/// The undelivered messages of one rank, one list per sender, and the nodes of all messages to it. Its rank's mutex
/// guards everything except `retire`.
class mailbox {
  public:
    [[gnu::noinline]] explicit mailbox(int ranks) : waiting_(ranks) {}

    /// Bytes handed over and not yet taken.
    std::size_t held_bytes() const { return held_bytes_; }

    /// Appends a borrowed message. Allocates only while more nodes are in use than ever before.
    node& borrow(rank_t source, rank_t receiver, channel on, byte_pieces pieces) {
        node& added = append(source, receiver, on);
        added.pieces = pieces;
        added.borrowed = true;
        return added;
    }
    node& hand_over(rank_t source, rank_t receiver, channel on, buffer&& bytes) {
        node& added = append(source, receiver, on);
        added.owned = std::move(bytes);
        added.pieces = byte_view(span_of(added.owned));
        added.borrowed = false;
        held_bytes_ += added.owned.size();
        return added;
    }

    /// Takes the earliest arrival from any of `peers`; null where there is none.
    node* take(std::span<const rank_t> peers, channel on) {
        node* best = nullptr;
        for (const rank_t peer : peers)
            if (node* first = waiting_.first(peer, on);
                first != nullptr && (best == nullptr || first->arrival < best->arrival))
                best = first;
        if (best != nullptr) mark_taken(*best);
        return best;
    }

    /// Takes the latest arrival from any of `peers` and passes the others to `drop(node&)`; null where there is none.
    template <class Drop>
    node* take_latest(std::span<const rank_t> peers, channel on, Drop&& drop) {
        node* best = nullptr;
        for (node* other = take(peers, on); other != nullptr; other = take(peers, on)) {
            if (best != nullptr) drop(*best);
            best = other;
        }
        return best;
    }

    template <class Drop>
    void drop_context(std::uint64_t context, Drop&& drop) {
        waiting_.for_each([&](node& n) {
            if (n.on.context == context) mark_taken(n), drop(n);
        });
    }
    template <class Drop>
    void drop_source(rank_t source, Drop&& drop) {
        waiting_.for_each_of(source, [&](node& n) { mark_taken(n), drop(n); });
    }

    /// Removes a borrowed message that nobody has taken; false when a receiver has taken it.
    bool withdraw(node& posted) {
        if ((posted.marks.load(std::memory_order_relaxed) & node::taken) != 0) return false;
        waiting_.unlink(posted);
        return true;
    }

    /// Returns a node for reuse; any thread may call it without the mutex. Nodes are pushed one by one and popped all
    /// at once, which excludes the ABA problem.
    void retire(node& unused) noexcept {
        unused.next = retired_.load(std::memory_order_relaxed);
        while (!retired_.compare_exchange_weak(unused.next, &unused, std::memory_order_release,
                                               std::memory_order_relaxed)) {
        }
    }

  private:
    static constexpr std::size_t nodes_per_block = 32;

    [[gnu::noinline]] node& append(rank_t source, rank_t receiver, channel on) {
        node& added = unused();
        added.source = source;
        added.receiver = receiver;
        added.on = on;
        added.marks.store(0, std::memory_order_relaxed);
        waiting_.append(added);
        return added;
    }

    node& unused() {
        if (free_ == nullptr) free_ = retired_.exchange(nullptr, std::memory_order_acquire);
        if (free_ == nullptr) {
            for (node& made : blocks_.add(plain_vector<node>(nodes_per_block))) {
                made.next = free_;
                free_ = &made;
            }
        }
        node& taken = *free_;
        free_ = taken.next;
        return taken;
    }

    void mark_taken(node& n) {
        waiting_.unlink(n);
        if (!n.borrowed) held_bytes_ -= n.owned.size();
        n.marks.fetch_or(node::taken, std::memory_order_relaxed);
    }

    rill::detail::undelivered<node> waiting_;
    chain<plain_vector<node>> blocks_;
    node* free_ = nullptr;
    std::atomic<node*> retired_{nullptr};
    std::size_t held_bytes_ = 0;
};

}}}  // namespace rill::RILL_ABI::in_process::detail
