#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_outbox.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_storage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The large messages that are being sent or received. A message is sent only after its receiver has posted the
/// receives and asked for it. Every request is answered by as many parts as it asks for; if the message has been
/// withdrawn, the parts are empty.
template <class Port>
class transfers {
  public:
    using request = typename Port::request;
    using node = mail::node<request>;
    using outgoing = mail::outgoing<request>;
    using outbox = mail::outbox<request>;

    transfers(Port& through, outbox& sent) : through_(through), sent_(sent), tags_(ranks(through)) {}

    void set_small(std::size_t piece) { small_ = piece; }
    bool is_small(std::size_t piece) const { return piece <= small_; }
    std::size_t small() const { return small_; }
    bool any() const { return !arriving_.empty() || !leaving_.empty(); }

    /// Decides where the parts of the large pieces arrive: straight in `targets` where no piece straddles two of them
    /// (true), else in memory of the pool (false). The targets, if any, have exactly the message's size.
    ///
    /// The order of the calls for an announced message: `place`, which says where its parts go; `expect`, which posts
    /// their receives; then the note that asks for them, because a part must find its receive. Only then may the pieces
    /// be read from `node::parts`. A message from this rank itself is `copy`-ed after `place` instead.
    bool place(node& n, std::span<const byte_span> targets) {
        n.parts.clear();
        const bool straight = !targets.empty() && place_straight(n, targets);
        if (!straight) place_in_pool(n);
        return straight;
    }

    /// Posts the receives for the parts; returns the tag for the request.
    std::uint32_t expect(node& n) {
        n.data_tag = unused_tag(n.source);
        n.is = node_state::asked;
        n.requests.clear();
        for (const byte_span part : n.parts)
            n.requests.push_back(through_.receive_part(part.data(), part.size(), n.source, n.data_tag));
        arriving_.push_back(&n);
        return n.data_tag;
    }

    /// Copies a message from this rank to itself; false when it has been withdrawn.
    bool copy(node& n) {
        outgoing* const from = sent_.find(n.id);
        if (from == nullptr) return false;
        std::size_t i = 0;
        for_each_part(from->pieces,
                      [&](byte_view part) { std::memcpy(n.parts[i++].data(), part.data(), part.size()); });
        n.is = node_state::complete;
        sent_.close(*from);
        return true;
    }

    /// Sends the parts of message `id`; false when the request does not fit the message.
    bool answer(rank_t peer, std::uint64_t id, std::uint32_t tag, std::uint64_t parts) {
        outgoing* const found = sent_.find(id);
        if (found == nullptr || found->is_moving) return answer_empty(peer, tag, parts), true;
        std::uint64_t has = 0;
        for_each_part(found->pieces, [&](byte_view) { ++has; });
        if (has != parts || found->peer != peer || found->is_unasked) return false;
        found->is_moving = true;
        for_each_part(found->pieces, [&](byte_view part) {
            found->requests.push_back(through_.send_part(part.data(), part.size(), peer, tag));
        });
        leaving_.push_back(found);
        return true;
    }

    /// Calls `arrived(node, withdrawn)` for each message that has arrived; true when a transfer has ended.
    template <class Arrived>
    bool progress(Arrived&& arrived) {
        bool any_ended = false;
        for (std::size_t i = 0; i < leaving_.size();) {
            if (!are_complete(leaving_[i]->requests)) {
                ++i;
                continue;
            }
            if (leaving_[i]->is_open) sent_.close(*leaving_[i]);
            leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
            any_ended = true;
        }
        for (std::size_t i = 0; i < arriving_.size();) {
            node& n = *arriving_[i];
            if (!has_arrived(n)) {
                ++i;
                continue;
            }
            arriving_.erase(arriving_.begin() + static_cast<std::ptrdiff_t>(i));
            n.is = node_state::complete;
            arrived(n, n.withdrawn);
            any_ended = true;
        }
        return any_ended;
    }

    /// Makes room in the pool for all pieces, also the small ones; `node::parts` and `node::pieces` say where.
    void place_whole(node& n) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < n.count; ++i) size += rounded(n.sizes[i]);
        n.body = pool_.take(size);
        n.parts.clear();
        n.pieces = {};
        std::byte* at = n.body.data();
        for (std::size_t i = 0; i < n.count; at += rounded(n.sizes[i++])) {
            n.parts.push_back({at, n.sizes[i]});
            n.pieces.push({at, n.sizes[i]});
        }
    }

    storage_pool& pool() { return pool_; }

    /// Called when the port ends: leaks the memory that it may still use.
    void abandon() noexcept {
        for (node* n : arriving_) {
            for (request& each : n->requests) {
                if (each) through_.cancel(each);
                through_.abandon(each);
            }
            n->body.leak();
        }
        arriving_.clear();
        for (outgoing* sent : leaving_) {
            abandon_all(sent->requests);
            if (!sent->owned.empty())
                new (std::nothrow) buffer(std::move(sent->owned));  // leaked: the port may still read it
        }
        leaving_.clear();
        abandon_all(empties_);
    }

    /// Moves a message that arrives straight in the user's memory into memory of the pool. It never waits; a part that
    /// is already being written can be moved only when its sender has sent it.
    class redirection {
      public:
        redirection(transfers& of, node& n) : of_(of), node_(n), before_(n.parts) {
            node_.leaves = true;
            // Last first: a part that arrives now matches an earlier one.
            for (std::size_t i = before_.size(); i-- > 0;)
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

  private:
    static std::size_t ranks(const Port& through) { return static_cast<std::size_t>(through.size()); }
    static std::size_t rounded(std::size_t size) {
        return (size + storage::alignment - 1) / storage::alignment * storage::alignment;
    }

    template <class Span, class Visit>
    static void cut(Span piece, Visit&& visit) {
        for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), most_part_bytes)))
            visit(piece.first(std::min(piece.size(), most_part_bytes)));
    }
    template <class Visit>
    void for_each_part(const byte_pieces& pieces, Visit&& visit) const {
        for (const byte_view piece : pieces)
            if (!is_small(piece.size())) cut(piece, visit);
    }

    bool place_straight(node& n, std::span<const byte_span> targets) const {
        std::size_t at = 0, begin = 0, target = 0;  // targets[target] begins at byte `begin` of the message
        for (std::size_t i = 0; i < n.count; at += n.sizes[i++]) {
            if (is_small(n.sizes[i])) continue;
            while (at >= begin + targets[target].size()) begin += targets[target++].size();
            if (at + n.sizes[i] > begin + targets[target].size()) {
                n.parts.clear();
                return false;
            }
            cut(targets[target].subspan(at - begin, n.sizes[i]), [&](byte_span part) { n.parts.push_back(part); });
        }
        return true;
    }

    void place_in_pool(node& n) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < n.count; ++i) size += is_small(n.sizes[i]) ? 0 : rounded(n.sizes[i]);
        n.body = pool_.take(size);
        std::byte* at = n.body.data();
        for (std::size_t i = 0; i < n.count; ++i) {
            if (is_small(n.sizes[i])) continue;
            cut(byte_span(at, n.sizes[i]), [&](byte_span part) { n.parts.push_back(part); });
            at += rounded(n.sizes[i]);
        }
    }

    /// A tag for a transfer from `source`, which no other uses: an old one may still wait for a sender that has gone.
    std::uint32_t unused_tag(rank_t source) {
        std::uint32_t& last = tags_[static_cast<std::size_t>(source)];
        const auto in_use = [&](const node* n) { return n->source == source && n->data_tag == last; };
        do last = last % most_data_tag + 1;
        while (std::any_of(arriving_.begin(), arriving_.end(), in_use));
        return last;
    }

    void answer_empty(rank_t peer, std::uint32_t tag, std::uint64_t parts) {
        for (std::uint64_t i = 0; i < parts; ++i) empties_.push_back(through_.send_part(nullptr, 0, peer, tag));
        if (are_complete(empties_)) empties_.clear();
    }

    void abandon_all(std::vector<request>& requests) const noexcept {
        for (request& each : requests) through_.abandon(each);
        requests.clear();
    }
    bool are_complete(std::vector<request>& requests) const {
        for (request& each : requests)
            if (!through_.is_complete(each)) return false;
        return true;
    }

    /// An empty part: the message was withdrawn, or its sender has gone. No part of another message is empty.
    static void note_end(node& n, std::size_t size) {
        if (size == 0) n.withdrawn = true;
    }

    bool has_arrived(node& n) const {
        if (n.leaves) return false;
        for (std::size_t i = 0; i < n.requests.size(); ++i) {
            if (!n.requests[i]) continue;
            const auto end = through_.look(n.requests[i]);
            if (!end) return false;
            note_end(n, end->size);
        }
        return true;
    }

    Port& through_;
    outbox& sent_;
    std::size_t small_ = 0;
    storage_pool pool_;
    std::vector<std::uint32_t> tags_;
    std::vector<node*> arriving_;
    std::vector<outgoing*> leaving_;
    std::vector<request> empties_;
};

}}}  // namespace rill::RILL_ABI::mail
