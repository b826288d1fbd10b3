#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_endings.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Does the work of the endpoints of one rank at one port, one endpoint after the other. It lives as
/// long as the port, and as the messages, sendings and activities of its endpoints.
template <class Port>
class engine : public endings<Port>, public std::enable_shared_from_this<engine<Port>> {
    using base = endings<Port>;
    using base::alive_, base::mutex_, base::office_, base::turns_;
    using base::outlast, base::require_alive, base::settle, base::step;
    using typename base::guard;

  public:
    using base::chosen, base::rank, base::size, base::through, base::wait;
    using typename base::node, typename base::options;

    explicit engine(const typename Port::place& of) : base(of) {}

    bool is_in_use() const { return in_use_; }
    /// The chunk size of a dense collective; the same on all ranks.
    std::size_t chunk_bytes() {
        constexpr std::size_t frame_head = 512;  // more than a head takes
        if (chosen().chunk_bytes != 0) return chosen().chunk_bytes;
        if (through().neighbours() == size()) return static_cast<std::size_t>(-1);
        return chosen().eager_bytes - frame_head;
    }

    /// Collective: all ranks call it equally often.
    void open(const options& given) {
        office_.open(given, ++incarnation_);
        mutex_.enable(through().is_concurrent());
        turns_.configure(given.spins, Port::is_simulation ? duration{} : given.nap, through().neighbours());
        in_use_ = true;
    }
    void close() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.close();
        in_use_ = false;
    }
    /// Called when the port ends: present waits and later calls throw. True the first time.
    bool end() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.abandon();
        return std::exchange(alive_, false);
    }
    /// Collective, after `end`.
    void free() { office_.free(); }

    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const guard lock(mutex_);
        require_alive();
        return office_.post(peer, on, pieces);
    }
    bool post(rank_t peer, channel on, buffer& bytes, deadline until) {
        {
            const guard lock(mutex_);
            require_alive();
            if (office_.post(peer, on, bytes)) return true;
        }
        return wait_for({&peer, 1}, on, until, [&] { return office_.post(peer, on, bytes); });
    }
    bool is_done(std::uint64_t id) {
        guard lock(mutex_);
        if (office_.is_done(id)) return true;
        require_alive();
        if (!step()) lock.keep_quiet();
        return office_.is_done(id);
    }
    bool await(std::uint64_t id, channel on, deadline until) {
        const rank_t peer = receiver_of(id);
        return wait_for({&peer, 1}, on, until, [&] {
            if (office_.is_done(id)) return true;
            office_.require_heard({&peer, 1}, on);
            return false;
        });
    }
    /// Withdraws a message that nobody has asked for; waits for one that is being sent.
    void settle_sent(std::uint64_t id, std::uint64_t context) noexcept {
        if (withdraw(id)) return;
        guard lock(mutex_);
        settle(lock, office_.receiver_of(id), context, [&] { return office_.is_done(id); });
    }
    /// Withdraws a message; false when it is being sent.
    bool withdraw(std::uint64_t id) noexcept {
        const guard lock(mutex_);
        try {
            return !alive_ || office_.withdraw(id);
        } catch (...) {
            return true;
        }
    }

    node* receive(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        await_message(peers, on, until, [&] { return (found = office_.take(peers, on)) != nullptr; });
        return found;
    }
    node* receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        await_message(peers, on, until, [&] { return (found = office_.take_latest(peers, on)) != nullptr; });
        return found;
    }
    /// The message, which may already lie in the targets (`node::straight`); null when `until` has passed.
    node* receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until);

    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        const guard lock(mutex_);
        require_alive();
        office_.expect(peer, on, targets);
    }
    void forget(channel on) noexcept {
        guard lock(mutex_);
        try {
            if (!alive_) return;
            office_.forget(on);
            while (node* const placed = office_.take_placed(on)) {
                redirect(lock, *placed);
                office_.dispose(*placed);
            }
        } catch (...) {  // the port has failed: nothing arrives any more
        }
    }

    void release(node& n) noexcept {
        const guard lock(mutex_);
        office_.release(n);
    }

    void announce(std::uint64_t context, const call_signature& call) {
        const guard lock(mutex_);
        require_alive();
        office_.knowledge().calls.announce(context, call);
        if (!office_.knowledge().questions.empty()) office_.answer_questions(context);
    }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until);
    std::uint64_t next_context(std::uint64_t key) {
        const guard lock(mutex_);
        return office_.knowledge().calls.next_context(key);
    }
    void close_context(std::uint64_t context) {
        const guard lock(mutex_);
        if (alive_) office_.close_context(context);
    }
    std::uint64_t incarnation(rank_t peer) {
        const guard lock(mutex_);
        return through().incarnation(peer);
    }
    void monitor(channel on) {
        const guard lock(mutex_);
        require_alive();
        office_.monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation) {
        const guard lock(mutex_);
        require_alive();
        office_.fence(peer, incarnation);
    }
    traffic counted() {
        const guard lock(mutex_);
        return office_.counted();
    }

  private:
    /// Waits for what only these peers can bring about. Throws where they cannot any more: see `require_any`.
    template <class Ready>
    bool wait_for(std::span<const rank_t> peers, channel on, deadline until, Ready&& ready) {
        return wait(on, until, [&] {
            if (ready()) return true;
            office_.require_any(peers, on, until);
            return false;
        });
    }
    template <class Ready>
    bool await_message(std::span<const rank_t> peers, channel on, deadline until, Ready&& ready) {
        return wait_for(peers, on, until, [&] {
            if (ready()) return true;
            office_.require_coming(peers, on);
            return false;
        });
    }
    rank_t receiver_of(std::uint64_t id) {
        const guard lock(mutex_);
        return office_.receiver_of(id);
    }
    void redirect(guard& lock, node& n) {
        auto under_way = office_.redirect(n);
        settle(lock, n.source, n.on.context, [&] { return under_way.look(); });
    }

    std::uint32_t incarnation_ = 0;
    bool in_use_ = false;
};

/// After a deadline or an abort, returns at once unless the message is being written to the targets.
template <class Port>
typename engine<Port>::node* engine<Port>::receive_into(rank_t peer, channel on, std::span<const byte_span> targets,
                                                        deadline until) {
    const std::size_t room = size_bytes(targets);
    node* claimed = nullptr;
    const auto arrives = [&] {
        if (claimed != nullptr && claimed->is_gone()) office_.release(*std::exchange(claimed, nullptr));
        if (claimed == nullptr) claimed = office_.claim(peer, on, targets, room);
        return claimed != nullptr && claimed->is == node_state::complete;
    };
    const auto give_back = [&] {
        guard lock(mutex_);
        if (claimed == nullptr || !alive_) return;
        if (claimed->straight && !claimed->is_gone()) redirect(lock, *claimed);
        if (alive_) office_.unclaim(*claimed);
    };
    try {
        if (!await_message({&peer, 1}, on, until, arrives)) return give_back(), nullptr;
    } catch (...) {
        give_back();
        throw;
    }
    const guard lock(mutex_);
    office_.accept(*claimed);
    return claimed;
}

template <class Port>
std::optional<call_signature> engine<Port>::inquire(rank_t peer, std::uint64_t context, std::uint64_t number,
                                                    deadline until) {
    control& known = office_.knowledge();
    const auto entered_or_later = [&] {
        if (peer == rank()) return known.calls.entered_or_later(context, number);
        const rill::detail::call_history* const told = known.told(peer, context);
        return told != nullptr ? told->entered_or_later(number) : std::nullopt;
    };
    bool asked = peer == rank();
    bool takes_state = until.at > this->now();
    std::optional<call_signature> answer, before;
    const auto look = [&] {
        rill::detail::call_history* const told = known.told(peer, context);
        if (std::exchange(takes_state, false) && told != nullptr) before = told->take_state(number);
        answer = peer == rank()    ? known.calls.entered(context, number)
                 : told != nullptr ? told->entered(number)
                                   : std::nullopt;
        if (!answer && office_.is_away(peer))
            answer = entered_or_later().value_or(call_signature{.number = number, .kind = operation::departure});
        if (!answer && !std::exchange(asked, true))
            office_.tell(peer, {.context = context, .id = number, .kind = note::question});
        return answer.has_value();
    };
    if (wait({context, tag_of(number)}, until, look)) return answer;
    const guard lock(mutex_);
    const auto said = entered_or_later();
    return said ? said : before;
}

}}}  // namespace rill::RILL_ABI::mail
