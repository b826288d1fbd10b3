#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of one receiver that nobody has taken, in the order of their arrival, one list per sender. `Node` has
/// `source`, `on`, `arrival`, `next` and `previous`; others own the nodes.
///
/// The simulator has lists of its own: for 10,000 ranks, a list for each pair would take too much memory.
template <class Node>
class undelivered {
  public:
    explicit undelivered(int size) : lists_(static_cast<std::size_t>(size)) {}

    /// Appends a message whose source and channel are set.
    void append(Node& added) {
        added.arrival = ++arrivals_;
        list& from = of(added.source);
        added.next = nullptr;
        added.previous = from.last;
        (from.last == nullptr ? from.first : from.last->next) = &added;
        from.last = &added;
    }
    /// Puts a message back to its place, before all others of its channel.
    void put_back(Node& first) {
        list& from = of(first.source);
        first.previous = nullptr;
        first.next = from.first;
        (from.first == nullptr ? from.last : from.first->previous) = &first;
        from.first = &first;
    }
    void unlink(Node& n) {
        list& from = of(n.source);
        (n.previous == nullptr ? from.first : n.previous->next) = n.next;
        (n.next == nullptr ? from.last : n.next->previous) = n.previous;
    }

    /// The earliest message of a sender on a channel, or null.
    Node* first(rank_t source, channel on) { return skip(of(source).first, on); }
    static Node* next(Node& after) { return skip(after.next, after.on); }

    /// Visits all messages; the visitor may unlink what it gets.
    template <class Visit>
    void for_each(Visit visit) {
        for (std::size_t source = 0; source < lists_.size(); ++source) for_each_of(static_cast<rank_t>(source), visit);
    }
    template <class Visit>
    void for_each_of(rank_t source, Visit visit) {
        for (Node *n = of(source).first, *next = nullptr; n != nullptr; n = next) {
            next = n->next;
            visit(*n);
        }
    }

  private:
    struct list {
        Node* first = nullptr;
        Node* last = nullptr;
    };

    list& of(rank_t source) { return lists_[static_cast<std::size_t>(source)]; }
    static Node* skip(Node* n, channel on) {
        while (n != nullptr && n->on != on) n = n->next;
        return n;
    }

    plain_vector<list> lists_;
    std::uint64_t arrivals_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
