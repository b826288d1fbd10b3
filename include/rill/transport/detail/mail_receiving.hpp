// The receiver's part of a post office.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
typename post_office<Port>::node* post_office<Port>::take(std::span<const rank_t> peers, channel on) {
    node* best = nullptr;
    for (const rank_t peer : peers)
        if (node* n = inbox_.first(peer, on);
            n != nullptr && n->is == node_state::complete && (best == nullptr || best->arrival > n->arrival))
            best = n;
    if (best == nullptr) best = ask_first(peers, on);
    if (best != nullptr) taken(*best);
    return best;
}

template <class Port>
typename post_office<Port>::node* post_office<Port>::take_latest(std::span<const rank_t> peers, channel on) {
    node *newest = nullptr, *chosen = nullptr;
    const auto is_later = [](const node& n, const node* than) { return than == nullptr || n.arrival > than->arrival; };
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

template <class Port>
typename post_office<Port>::node* post_office<Port>::claim(rank_t peer, channel on, std::span<const byte_span> targets,
                                                           std::size_t room) {
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

template <class Port>
void post_office<Port>::unclaim(node& n) {
    if (n.is_gone()) return release(n);
    if (n.straight && n.is == node_state::complete) assemble(n);
    n.straight = n.claimed = false;
    inbox_.put_back(n);
}

template <class Port>
void post_office<Port>::expect(const expectation& next) {
    if (node* const n = inbox_.first_unexpected(next.peer, next.on))
        fulfil(*n, next);
    else
        expectations_.add(next);
}

template <class Port>
typename post_office<Port>::node* post_office<Port>::take_placed(channel on) {
    node* const found = inbox_.find([=](const node& n) { return n.placed && n.on == on; });
    if (found != nullptr) {
        inbox_.unlink(*found);
        repay(*found);
    }
    return found;
}

/// Asks the sender for an announced message; false when it had been withdrawn, and is gone.
template <class Port>
bool post_office<Port>::ask(node& n, std::span<const byte_span> targets) {
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
template <class Port>
void post_office<Port>::fulfil(node& n, const expectation& by) {
    n.expected = true;
    if (n.is != node_state::announced) return;
    const bool fits = by.has_room_for(n.size) && n.source != rank();
    if (ask(n, fits ? by.places() : std::span<const byte_span>{})) n.placed = std::exchange(n.straight, false);
}

/// Asks for the first message of each peer that is only announced. Returns one that is here at once, which only a
/// message from this rank itself can be; else null.
template <class Port>
typename post_office<Port>::node* post_office<Port>::ask_first(std::span<const rank_t> peers, channel on) {
    node* here = nullptr;
    for (const rank_t peer : peers) {
        node* const n = inbox_.first(peer, on);
        if (n == nullptr || n->is != node_state::announced) continue;
        if (ask(*n) && n->is == node_state::complete) here = n;
    }
    return here;
}

template <class Port>
void post_office<Port>::ended(node& n, bool withdrawn) {
    if (n.doomed) return release(n);
    if (!withdrawn) return assemble(n);
    if (n.claimed) return;
    inbox_.unlink(n);
    release(n);
}

/// Sets `pieces` of an announced message to where they lie.
template <class Port>
void post_office<Port>::assemble(node& n) {
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

template <class Port>
void post_office<Port>::taken(node& n) {
    inbox_.unlink(n);
    accept(n);
}

template <class Port>
void post_office<Port>::drop(node& n) {
    repay(n);
    if (n.is == node_state::announced || n.is == node_state::begun) tell(n.source, {.id = n.id, .kind = note::drop});
    discard(n);
}

template <class Port>
void post_office<Port>::discard(node& n) noexcept {
    inbox_.unlink(n);
    dispose(n);
}

template <class Port>
void post_office<Port>::dispose(node& n) noexcept {
    if (n.is == node_state::asked) {
        n.doomed = true;
        return;
    }
    if (n.is == node_state::begun)
        for (auto& arrival : state_of(n.source).arrivals)
            if (arrival.into == &n) arrival.into = nullptr;
    release(n);
}

/// Makes room for a message that comes unasked; `content`: its first bytes.
template <class Port>
void post_office<Port>::take_beginning(node& n, byte_view content) {
    n.unasked = true;
    n.is = node_state::begun;
    transfers_.place_whole(n);
    state_of(n.source).came_unasked += n.size;
    state_of(n.source).arrivals.push_back({.id = n.id, .left = n.size, .into = &n});
    take_more(n.source, n.id, content);
}

/// Takes the next bytes of a message that comes unasked; false where it has not begun or is shorter.
template <class Port>
bool post_office<Port>::take_more(rank_t source, std::uint64_t id, byte_view content) {
    auto& arrivals = state_of(source).arrivals;
    const auto found = std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
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
template <class Port>
void post_office<Port>::take_end(rank_t source, std::uint64_t id) {
    auto& arrivals = state_of(source).arrivals;
    const auto found = std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
    if (found == arrivals.end()) return;
    if (node* const n = found->into; n != nullptr) {
        repay(*n);
        discard(*n);
    }
    arrivals.erase(found);
}

/// Returns credit for a message to its sender, in lumps, or at once where the sender waits for it.
template <class Port>
void post_office<Port>::repay(const node& n) {
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

template <class Port>
void post_office<Port>::pay(rank_t peer) {
    peer_state& to = state_of(peer);
    if (to.owed.handed + to.owed.unasked == 0) return;
    to.wanted = false;
    const credit paid = std::exchange(to.owed, {});
    to.came_unasked -= paid.unasked;
    tell(peer, {.context = paid.unasked, .id = paid.handed, .kind = note::credit});
}

}}}  // namespace rill::RILL_ABI::mail
