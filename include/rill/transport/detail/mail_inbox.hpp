#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_storage.hpp>
#include <rill/transport/detail/undelivered.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// How much of a message has arrived: all of it; its announcement, which has been answered or not; or some of one that
/// comes unasked.
enum class node_state : std::uint8_t { complete, announced, asked, begun };

/// A message from its arrival, or the arrival of its announcement, until its release by the receiver.
template <class Request>
struct node {
    static constexpr std::size_t inside = 448;

    alignas(storage::alignment) std::byte small[inside];  ///< the payload of the note, where it fits
    storage note{};                                       ///< the payload of a note that does not fit in `small`
    storage body{};                                       ///< the large pieces
    rank_t source = no_rank;
    channel on{};
    std::uint64_t arrival = 0;
    std::uint64_t id = 0;
    node_state is = node_state::complete;
    bool handed = false;
    bool unasked = false;  ///< it comes without being asked for
    bool withdrawn = false;
    bool claimed = false;   ///< it is in no list, because one receiver waits for it
    bool straight = false;  ///< it arrives in the targets of that receiver
    bool expected = false;  ///< it was expected, and is asked for before anybody waits for it
    bool placed = false;    ///< it arrives in the targets given with the expectation
    bool doomed = false;    ///< nobody will take it: it is recycled when it has arrived
    bool leaves = false;    ///< it is being moved out of the user's memory: see `transfers::redirection`
    bool latest = false;    ///< chosen by `take_latest`: later announcements do not displace it
    std::uint8_t count = 0;
    byte_pieces pieces{};
    std::size_t sizes[byte_pieces::most]{};
    std::size_t size = 0;
    std::vector<byte_span> parts{};  ///< where each part of the large pieces goes
    std::vector<Request> requests{};
    std::uint32_t data_tag = 0;
    std::uint32_t life = 0;  ///< of its sender, see `peer_state`
    node* next = nullptr;
    node* previous = nullptr;

    /// Whether its sender had withdrawn it before it was asked for.
    bool is_gone() const { return withdrawn && is == node_state::complete; }
    const std::byte* payload() const { return note ? note.data() + storage::alignment : small; }
};

/// A message that comes unasked and is not here whole.
template <class Request>
struct unasked_arrival {
    std::uint64_t id = 0;
    std::size_t left = 0;           ///< bytes that are to come
    node<Request>* into = nullptr;  ///< null: the message has been dropped
};

/// Messages that have arrived or been announced, in order, one list per sender.
template <class Request>
class inbox : public rill::detail::undelivered<mail::node<Request>> {
    using undelivered = rill::detail::undelivered<mail::node<Request>>;

  public:
    using node = mail::node<Request>;
    using undelivered::first;
    using undelivered::next;
    using undelivered::undelivered;

    /// Appends a message. Allocates only while more nodes are in use than ever before.
    node& append(rank_t source, channel on) {
        node& added = unused();
        added.source = source;
        added.on = on;
        undelivered::append(added);
        return added;
    }

    node* first_unexpected(rank_t source, channel on) {
        node* n = first(source, on);
        while (n != nullptr && n->expected) n = next(*n);
        return n;
    }

    /// Some message that `which(node)` selects, or null.
    template <class Which>
    node* find(Which which) {
        node* found = nullptr;
        this->for_each([&](node& n) {
            if (which(n)) found = &n;
        });
        return found;
    }

    void recycle(node& n) noexcept { n.next = std::exchange(free_, &n); }

  private:
    static constexpr std::size_t nodes_per_block = 16;

    node& unused() {
        if (free_ == nullptr) {
            blocks_.push_back(std::make_unique<node[]>(nodes_per_block));
            for (std::size_t i = 0; i < nodes_per_block; ++i) recycle(blocks_.back()[i]);
        }
        node& taken = *std::exchange(free_, free_->next);
        taken.handed = taken.unasked = taken.withdrawn = taken.claimed = taken.straight = false;
        taken.expected = taken.placed = taken.doomed = taken.leaves = taken.latest = false;
        taken.is = node_state::complete;
        return taken;
    }

    std::vector<std::unique_ptr<node[]>> blocks_;
    node* free_ = nullptr;
};

}}}  // namespace rill::RILL_ABI::mail
