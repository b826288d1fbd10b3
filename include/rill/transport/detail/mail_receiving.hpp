#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/lookout.hpp>
#include <rill/transport/detail/mail_control.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_outbox.hpp>
#include <rill/transport/detail/mail_sending.hpp>
#include <rill/transport/detail/mail_storage.hpp>
#include <rill/transport/detail/mail_transfers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The receiver's part of a post office: the messages that have arrived or been announced, and those that are expected.
template <class Port>
class receiving_desk : public sending_desk<Port> {
    using base = sending_desk<Port>;

  public:
    using base::rank, base::size, base::tell;
    using typename base::node, typename base::options;

    /// Begins the work for an endpoint. `incarnation` is its number, equal on all ranks; notes with older ones are
    /// ignored.
    void open(const options& chosen, std::uint32_t incarnation) {
        base::open(chosen, incarnation);
        most_eager_bytes_ = std::max(most_eager_bytes_, chosen.eager_bytes);
        if (landing_.size() < landing_size()) landing_ = storage(landing_size());
        expected_.clear();
        control_ = {};
        watch_ = rill::detail::lookout(size());
        known_open_ = every_context;
    }
    /// Ends the work for the endpoint and waits for nobody: transfers in progress continue, the rest is dropped.
    void close() noexcept {
        outbox_.for_each_open([&](outgoing& sent) {
            if (!sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each([&](node& left) { discard(left); });
        for (peer_state& peer : peers_) peer.unasked.clear();
        unasked_ = 0;
        landings_.clear();
        transfers_.pool().clear();
    }
    control& knowledge() { return control_; }

    /// Takes the earliest message from any of the peers that has arrived; else asks for the announced ones: null.
    node* take(std::span<const rank_t> peers, channel on) {
        node* best = nullptr;
        for (const rank_t peer : peers)
            if (node* n = inbox_.first(peer, on);
                n != nullptr && n->is == node_state::complete && (best == nullptr || best->arrival > n->arrival))
                best = n;
        if (best == nullptr) best = ask_first(peers, on);
        if (best != nullptr) taken(*best);
        return best;
    }
    /// Takes the latest message that has arrived or been announced, and drops all older ones; null while it has not
    /// arrived. A message that has been asked for is not dropped for later ones, so that repeated polls succeed.
    node* take_latest(std::span<const rank_t> peers, channel on) {
        node *newest = nullptr, *chosen = nullptr;
        const auto is_later = [](const node& n, const node* than) {
            return than == nullptr || n.arrival > than->arrival;
        };
        for (const rank_t peer : peers)
            for (node* n = inbox_.first(peer, on); n != nullptr; n = inbox_.next(*n)) {
                if (is_later(*n, newest)) newest = n;
                if (n->latest && is_later(*n, chosen)) chosen = n;
            }
        if (newest == nullptr) return nullptr;
        if (chosen == nullptr || newest->is == node_state::complete) chosen = newest;
        for (const rank_t peer : peers)
            for (node* n = inbox_.first(peer, on); n != nullptr;)
                if (node* const seen = std::exchange(n, inbox_.next(*n)); seen != newest && seen != chosen) drop(*seen);
        chosen->latest = true;
        if (chosen->is == node_state::announced && !ask(*chosen)) return nullptr;
        if (chosen->is != node_state::complete) return nullptr;
        taken(*chosen);
        return chosen;
    }
    /// Takes the first message from `peer` for `receive_into`. It may still have to arrive; `node::straight` says
    /// whether it arrives straight in `targets`.
    node* claim(rank_t peer, channel on, std::span<const byte_span> targets, std::size_t room) {
        node* const n = inbox_.first(peer, on);
        if (n == nullptr) return nullptr;
        if (n->is == node_state::announced && n->size == room && n->source != rank()) {
            inbox_.unlink(*n);
            n->claimed = true;
            ask(*n, targets);
            return n;
        }
        if (n->is == node_state::announced && !ask(*n)) return nullptr;
        if (n->is != node_state::complete) return nullptr;
        inbox_.unlink(*n);
        return n;
    }
    /// Gives back a claimed message in any state. One that arrives straight must have been redirected before.
    void unclaim(node& n) {
        if (n.is_gone()) return release(n);
        if (n.straight && n.is == node_state::complete) assemble(n);
        n.straight = n.claimed = false;
        inbox_.put_back(n);
    }
    /// Completes the receive of a claimed message that has arrived.
    void accept(node& n) {
        repay(n);
        this->counted_ += {.messages_received = 1, .bytes_received = n.size};
    }
    typename transfers<Port>::redirection redirect(node& n) { return {transfers_, n}; }

    /// Asks for the next message of the channel that is not yet expected, as soon as it is announced.
    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        const expectation next(peer, on, targets);
        if (node* const n = inbox_.first_unexpected(peer, on))
            fulfil(*n, next);
        else
            expected_.push_back(next);
    }
    /// Removes all expectations of the channel, except of messages that have been asked for.
    void forget(channel on) {
        std::erase_if(expected_, [=](const expectation& e) { return e.on == on; });
    }
    /// Takes a message of the channel that arrives, or has arrived, in the targets of its expectation out of its list;
    /// null where there is none.
    node* take_placed(channel on) {
        node* const found = inbox_.find([=](const node& n) { return n.placed && n.on == on; });
        if (found != nullptr) {
            inbox_.unlink(*found);
            repay(*found);
        }
        return found;
    }
    /// Releases a message that is in no list and that nobody will take, now or when it has arrived.
    void dispose(node& n) noexcept {
        if (n.is == node_state::asked) {
            n.doomed = true;
            return;
        }
        if (n.is == node_state::begun)
            for (auto& arrival : state_of(n.source).arrivals)
                if (arrival.into == &n) arrival.into = nullptr;
        release(n);
    }
    /// Called by the receiver when it will not read the message again.
    void release(node& n) noexcept {
        landings_.put(std::move(n.note));
        transfers_.pool().put(std::move(n.body));
        inbox_.recycle(n);
    }

    void close_context(std::uint64_t context) {
        std::erase_if(expected_, [=](const expectation& e) { return e.on.context == context; });
        control_.calls.close(context);
        control_.forget(context);
        watch_.forget(context);
        known_open_ = every_context;
        inbox_.for_each([&](node& n) {
            if (n.on.context == context) drop(n);
        });
    }

  protected:
    using base::chosen_, base::outbox_, base::peers_, base::state_of, base::transfers_, base::unasked_;
    using typename base::credit, typename base::outgoing, typename base::peer_state;

    explicit receiving_desk(const typename Port::place& of) : base(of), inbox_(size()), watch_(size()) {}
    ~receiving_desk() = default;

    void deliver(rank_t source, const envelope& head, const std::byte* payload) {
        const channel on{.context = head.context, .tag = head.tag};
        node& n = inbox_.append(source, on);
        n.handed = head.kind == note::handed || head.kind == note::announce_handed;
        n.id = head.id;
        n.life = state_of(source).life;
        n.count = head.pieces;
        if (head.kind == note::lent || head.kind == note::handed) {
            keep_payload(n, payload, head.size);
            n.size = head.size;
            n.pieces = byte_view(n.payload(), n.size);
        } else {
            n.size = 0;
            for (std::size_t i = 0; i < n.count; ++i) n.size += n.sizes[i] = announcement::size_of_piece(payload, i);
            if (head.kind == note::begin) {
                take_beginning(n, byte_view(payload, head.size).subspan(announcement::table));
            } else {
                keep_payload(n, payload, head.size);
                n.is = node_state::announced;
            }
        }
        if (watch_.is_fenced(source)) return drop(n);
        if (head.context != known_open_) {
            if (control_.calls.is_closed(head.context)) return drop(n);
            known_open_ = head.context;
        }
        const auto is_it = [&](const expectation& e) { return e.peer == source && e.on == on; };
        const auto found = std::find_if(expected_.begin(), expected_.end(), is_it);
        if (found == expected_.end()) return;
        const expectation by = *found;
        expected_.erase(found);
        fulfil(n, by);
    }
    /// Takes the next bytes of a message that comes unasked; false where it has not begun or is shorter.
    bool take_more(rank_t source, std::uint64_t id, byte_view content) {
        auto& arrivals = state_of(source).arrivals;
        const auto found =
            std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
        if (found == arrivals.end() || found->left < content.size()) return false;
        node* const n = found->into;
        if (n != nullptr) rill::detail::copy_across(content, n->parts, n->size - found->left);
        found->left -= content.size();
        if (found->left != 0) return true;
        if (n != nullptr) n->is = node_state::complete;
        arrivals.erase(found);
        return true;
    }
    /// The rest of a message that comes unasked will not come.
    void take_end(rank_t source, std::uint64_t id) {
        auto& arrivals = state_of(source).arrivals;
        const auto found =
            std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
        if (found == arrivals.end()) return;
        if (node* const n = found->into; n != nullptr) {
            repay(*n);
            discard(*n);
        }
        arrivals.erase(found);
    }
    /// Ends what stands for messages from and to a peer that nothing more comes from, and whose port has ended the
    /// rest. Messages that are here can still be taken.
    void forsake(rank_t peer) {
        peer_state& of = state_of(peer);
        unasked_ -= of.unasked.size();
        of.unasked.clear();
        outbox_.for_each_open([&](outgoing& sent) {
            if (sent.peer == peer && !sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each_of(peer, [&](node& n) {
            if (n.is == node_state::announced || n.is == node_state::begun) discard(n);
        });
        of.arrivals.clear();
        of.outstanding = of.owed = {};
        of.came_unasked = 0;
        of.want_sent = of.wanted = false;
        ++of.life;
    }
    void ended(node& n, bool withdrawn) {
        if (n.doomed) return release(n);
        if (!withdrawn) return assemble(n);
        if (n.claimed) return;
        inbox_.unlink(n);
        release(n);
    }
    void drop(node& n) {
        repay(n);
        if (n.is == node_state::announced || n.is == node_state::begun)
            tell(n.source, {.id = n.id, .kind = note::drop});
        discard(n);
    }
    void discard(node& n) noexcept {
        inbox_.unlink(n);
        dispose(n);
    }
    void pay(rank_t peer) {
        peer_state& to = state_of(peer);
        if (to.owed.handed + to.owed.unasked == 0) return;
        to.wanted = false;
        const credit paid = std::exchange(to.owed, {});
        to.came_unasked -= paid.unasked;
        tell(peer, {.context = paid.unasked, .id = paid.handed, .kind = note::credit});
    }

    /// Large enough for notes of earlier endpoints, which may still arrive.
    std::size_t landing_size() const { return storage::alignment + most_eager_bytes_; }

    inbox<typename Port::request> inbox_;
    storage landing_;  ///< of the next note
    control control_;
    rill::detail::lookout watch_;

  private:
    /// A message that this rank will receive, and the memory where it may be put.
    struct expectation {
        rank_t peer = no_rank;
        channel on{};
        byte_span targets[byte_pieces::most]{};
        std::size_t count = 0;

        expectation(rank_t from, channel which, std::span<const byte_span> places)
            : peer(from), on(which), count(places.size() <= byte_pieces::most ? places.size() : 0) {
            std::copy_n(places.begin(), count, targets);
        }

        std::span<const byte_span> places() const { return {targets, count}; }
        bool has_room_for(std::size_t size) const { return count != 0 && size_bytes(places()) == size; }
    };

    void keep_payload(node& n, const std::byte* payload, std::size_t count) {
        if (count <= node::inside) {
            if (count != 0) std::memcpy(n.small, payload, count);
            return;
        }
        if (payload == landing_.data() + storage::alignment) {
            n.note = std::exchange(landing_, landings_.take(landing_size()));
            return;
        }
        n.note = landings_.take(landing_size());
        std::memcpy(n.note.data() + storage::alignment, payload, count);
    }
    /// Asks the sender for an announced message; false when it had been withdrawn, and is gone.
    bool ask(node& n, std::span<const byte_span> targets = {}) {
        n.straight = transfers_.place(n, targets);
        if (n.source == rank()) {
            n.withdrawn = !transfers_.copy(n);
            return ended(n, n.withdrawn), !n.withdrawn;
        }
        const std::uint32_t tag = transfers_.expect(n);
        tell(n.source, {.context = n.parts.size(), .id = n.id, .tag = tag, .kind = note::ask});
        if (!n.straight) return true;
        assemble(n);  // the small pieces are here; the large ones will arrive in the targets
        for (std::size_t i = 0, at = 0; i < n.count; at += n.sizes[i++])
            if (transfers_.is_small(n.sizes[i])) rill::detail::copy_across(n.pieces[i], targets, at);
        return true;
    }
    /// Asks for an expected message before anybody waits for it.
    void fulfil(node& n, const expectation& by) {
        n.expected = true;
        if (n.is != node_state::announced) return;
        const bool fits = by.has_room_for(n.size) && n.source != rank();
        if (ask(n, fits ? by.places() : std::span<const byte_span>{})) n.placed = std::exchange(n.straight, false);
    }
    /// Asks for the first message of each peer that is only announced. Returns one that is here at once, which only a
    /// message from this rank itself can be; else null.
    node* ask_first(std::span<const rank_t> peers, channel on) {
        node* here = nullptr;
        for (const rank_t peer : peers) {
            node* const n = inbox_.first(peer, on);
            if (n == nullptr || n->is != node_state::announced) continue;
            if (ask(*n) && n->is == node_state::complete) here = n;
        }
        return here;
    }
    /// Sets `pieces` of an announced message to where they lie.
    void assemble(node& n) {
        const std::byte* content = n.payload() + announcement::table;
        n.pieces = {};
        std::size_t part = 0;
        for (std::size_t i = 0; i < n.count; ++i) {
            if (transfers_.is_small(n.sizes[i])) {
                n.pieces.push({content, n.sizes[i]});
                content += announcement::aligned(n.sizes[i]);
                continue;
            }
            n.pieces.push({n.parts[part].data(), n.sizes[i]});
            for (std::size_t left = n.sizes[i]; left > 0; left -= n.parts[part++].size()) {
            }
        }
    }
    void taken(node& n) {
        inbox_.unlink(n);
        accept(n);
    }
    /// Makes room for a message that comes unasked; `content`: its first bytes.
    void take_beginning(node& n, byte_view content) {
        n.unasked = true;
        n.is = node_state::begun;
        transfers_.place_whole(n);
        state_of(n.source).came_unasked += n.size;
        state_of(n.source).arrivals.push_back({.id = n.id, .left = n.size, .into = &n});
        take_more(n.source, n.id, content);
    }
    /// Returns credit for a message to its sender, in lumps, or at once where the sender waits for it.
    void repay(const node& n) {
        if (!n.handed && !n.unasked) return;
        peer_state& from = state_of(n.source);
        if (n.life != from.life) return;
        if (n.source == rank()) {
            from.outstanding.handed -= n.size;
            return;
        }
        std::size_t& owed = n.handed ? from.owed.handed : from.owed.unasked;
        owed += n.size;
        if (from.wanted || owed >= chosen_.mailbox_bytes / 4) pay(n.source);
    }

    std::uint64_t known_open_ = every_context;
    std::size_t most_eager_bytes_ = 0;   ///< the largest value that any endpoint has chosen
    std::vector<expectation> expected_;  ///< those whose messages have neither arrived nor been announced, in order
    storage_pool landings_;
};

}}}  // namespace rill::RILL_ABI::mail
