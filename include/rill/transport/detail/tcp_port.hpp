#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/uio.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The connections of one rank, with what waits to be sent or taken. Who calls must hold the engine's mutex.
class connections {
  public:
    /// A receive of a part.
    struct receive {
        byte_span into;
        std::uint32_t tag = 0;
        bool begun = false, ended = false;
        mail::part_end how{};
        std::vector<std::byte> own{};  ///< of a part that no receive waits for yet
    };
    using place_of_part = std::shared_ptr<receive>;

    explicit connections(mesh&& made) : mesh_(std::move(made)), loop_(mesh_.rank) {}

    const mesh& of() const { return mesh_; }

    void configure(const options& chosen) {
        farewell_ = chosen.farewell_timeout;
        for (rank_t peer = 0; peer < mesh_.ranks; ++peer) {
            conversation::options talk;
            talk.self = mesh_.rank;
            talk.peer = peer;
            talk.most.note_bytes = sizeof(mail::envelope) + chosen.eager_bytes;
            talk.most.part_bytes = mail::most_part_bytes;
            talk.window_bytes = chosen.window_bytes;
            peers_.push_back(std::make_unique<peer_state>(peer, talk));
            peers_.back()->is_open = peer != mesh_.rank;
            if (peer == mesh_.rank) continue;
            peers_.back()->talk.attach(0);
            loop_.watch(line(*peers_.back()), static_cast<std::uint64_t>(peer), false);
        }
    }

    conversation::ticket send_note(byte_view bytes, rank_t to) {
        peer_state& peer = at(to);
        if (!peer.is_open) return 0;
        const auto sent = peer.talk.send_note(bytes);
        write(peer);
        return is_done(to, sent) ? 0 : sent;
    }
    conversation::ticket send_part(byte_view bytes, rank_t to, std::uint32_t tag) {
        peer_state& peer = at(to);
        if (!peer.is_open) return 0;
        const auto sent = peer.talk.send_part(bytes, static_cast<std::uint16_t>(tag));
        write(peer);
        return is_done(to, sent) ? 0 : sent;
    }
    bool is_done(rank_t to, conversation::ticket sent) { return !at(to).is_open || at(to).talk.is_done(sent); }

    place_of_part receive_part(byte_span into, rank_t from, std::uint32_t tag) {
        peer_state& peer = at(from);
        auto& early = peer.early;
        const auto found = std::find_if(early.begin(), early.end(), [&](const auto& each) { return each->tag == tag; });
        if (found != early.end()) {
            const place_of_part here = *found;
            early.erase(found);
            if (here->own.size() > into.size()) refuse_bytes(mesh_.rank, from, "a part that is too long");
            if (!here->own.empty()) std::memcpy(into.data(), here->own.data(), here->own.size());
            here->into = into.first(here->own.size());
            if (here->ended) return here;
            if (peer.arriving == here) peer.moves = here;  // the rest still comes into its own memory
            return here;
        }
        auto made = std::make_shared<receive>(receive{.into = into, .tag = tag});
        made->ended = !peer.is_open;
        if (!made->ended) peer.receives.push_back(made);
        return made;
    }
    void cancel(const place_of_part& given) {
        if (given->begun || given->ended) return;
        given->ended = given->how.cancelled = true;
        for (auto& peer : peers_) peer->receives.remove(given);
    }

    mail::received_note take_note(std::byte* into, std::size_t capacity) {
        if (notes_.empty()) look();
        if (notes_.empty()) return {};
        note taken = std::move(notes_.front());
        notes_.pop_front();
        if (taken.bytes.size() > capacity) refuse_bytes(mesh_.rank, taken.source, "a note that is too long");
        if (!taken.bytes.empty()) std::memcpy(into, taken.bytes.data(), taken.bytes.size());
        const mail::received_note told{.source = taken.source, .size = taken.bytes.size()};
        if (spare_.size() < most_spare) spare_.push_back(std::move(taken.bytes));
        return told;
    }
    template <class Lock>
    void await_note(Lock& lock, deadline until) {
        if (std::exchange(has_news_, false)) return;
        loop_.wait(lock, timer_, until, [this](std::uint64_t name, std::uint32_t events) { serve(name, events); });
        keep_time();
    }
    template <class Lock>
    void attend(Lock& lock) {
        if (std::exchange(has_news_, false)) return;
        loop_.attend(lock, timer_, [this](std::uint64_t name, std::uint32_t events) { serve(name, events); });
        keep_time();
    }
    loop& waits() { return loop_; }
    rank_t take_loss() {
        if (losses_.empty()) return no_rank;
        const rank_t lost = losses_.front();
        losses_.erase(losses_.begin());
        return lost;
    }

    /// Says goodbye, waits a limited time until the peers have taken all that was sent, and closes.
    void leave() noexcept {
        try {
            for (auto& each : peers_)
                if (each->is_open) each->talk.say_goodbye(), write(*each);
            const time_point until = wall_clock() + farewell_;
            mail::optional_mutex nobody;
            const auto waits = [](const auto& each) { return each->is_open && !each->talk.is_idle(); };
            while (std::any_of(peers_.begin(), peers_.end(), waits) && wall_clock() < until) {
                await_note(nobody, until);
                notes_.clear();
            }
            for (auto& each : peers_)  // tells the peers what was taken of their last words
                if (each->is_open) write(*each, true);
        } catch (...) {  // what a peer still says does not matter
        }
        for (auto& each : peers_) shut(*each);
    }

  private:
    static constexpr std::size_t most_spare = 64;

    struct note {
        rank_t source = no_rank;
        std::vector<std::byte> bytes;
    };
    struct peer_state {
        peer_state(rank_t of, const conversation::options& chosen) : rank(of), talk(chosen) {}

        rank_t rank;
        conversation talk;
        bool is_open = false, said_goodbye = false, wants_to_write = false;
        bool is_deaf = false;  ///< takes nothing more; what it has sent can still be read
        std::list<place_of_part> receives{};
        std::vector<place_of_part> early{};  ///< parts, begun or whole, that no receive waits for
        place_of_part arriving{}, moves{};
        note coming{};
    };
    /// Takes what a peer says.
    struct sink {
        connections& of;
        peer_state& peer;

        byte_span begin_note(std::size_t size) {
            if (!of.spare_.empty()) {
                peer.coming.bytes = std::move(of.spare_.back());
                of.spare_.pop_back();
            }
            peer.coming.bytes.resize(size);
            peer.coming.source = peer.rank;
            return peer.coming.bytes;
        }
        void end_note() { of.notes_.push_back(std::exchange(peer.coming, {})); }
        byte_span begin_part(std::uint16_t tag, std::size_t size) {
            const auto fits = [&](const place_of_part& each) { return each->tag == tag; };
            const auto found = std::find_if(peer.receives.begin(), peer.receives.end(), fits);
            if (found == peer.receives.end()) {
                peer.arriving =
                    std::make_shared<receive>(receive{.into = {}, .tag = tag, .own = std::vector<std::byte>(size)});
                peer.early.push_back(peer.arriving);
                peer.arriving->begun = true;
                peer.arriving->how.size = size;
                return peer.arriving->own;
            }
            peer.arriving = *found;
            peer.receives.erase(found);
            if (peer.arriving->into.size() < size) refuse_bytes(of.mesh_.rank, peer.rank, "a part that is too long");
            peer.arriving->begun = true;
            peer.arriving->how.size = size;
            return peer.arriving->into.first(size);
        }
        void end_part(std::uint16_t) {
            const place_of_part done = std::exchange(peer.arriving, nullptr);
            if (std::exchange(peer.moves, nullptr) != nullptr && !done->own.empty())
                std::memcpy(done->into.data(), done->own.data(), done->own.size());
            done->ended = true;
        }
        void goodbye() { peer.said_goodbye = true; }
    };

    peer_state& at(rank_t peer) { return *peers_[static_cast<std::size_t>(peer)]; }
    const socket& line(const peer_state& to) const { return mesh_.to_peers[static_cast<std::size_t>(to.rank)]; }

    /// Takes what has come.
    void look() {
        bool any = false;
        loop_.look([&](std::uint64_t name, std::uint32_t events) {
            any = true;
            serve(name, events);
        });
        keep_time();
        if (!any) return;
        has_news_ = true;
        loop_.wake();  // those who wait for these sockets find nothing there
    }
    void serve(std::uint64_t name, std::uint32_t events) {
        peer_state& peer = *peers_[static_cast<std::size_t>(name)];
        if (peer.is_open && (events & EPOLLOUT) != 0) write(peer);
        if (peer.is_open && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(peer);
    }
    /// Does what is due by now.
    void keep_time() {
        const time_point now = wall_clock();
        if (now < timer_.at) return;
        timer_ = deadline::never;
        for (auto& each : peers_) {
            if (!each->is_open) continue;
            if (each->talk.ack_due().at <= now) write(*each);
            if (each->is_open) timer_ = std::min(timer_, each->talk.ack_due());
        }
    }

    void read(peer_state& peer) {
        constexpr int most_reads = 8;  // then it is the turn of others
        sink takes{*this, peer};
        for (int i = 0; i < most_reads; ++i) {
            byte_span room[2];
            const std::size_t count = peer.talk.room(room);
            iovec into[2];
            std::size_t size = 0;
            for (std::size_t k = 0; k < count; ++k) {
                into[k] = {.iov_base = room[k].data(), .iov_len = room[k].size()};
                size += room[k].size();
            }
            const ssize_t got = ::readv(line(peer).get(), into, static_cast<int>(count));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return lose(peer);
            try {
                peer.talk.arrived(static_cast<std::size_t>(got), takes, wall_clock());
            } catch (...) {  // what this peer says makes no sense
                lose(peer);
                throw;
            }
            if (static_cast<std::size_t>(got) < size) break;
        }
        write(peer);
        timer_ = std::min(timer_, peer.talk.ack_due());
    }

    void write(peer_state& peer, bool acknowledges_now = false) {
        if (peer.is_deaf) return;
        const bool waited = peer.wants_to_write;
        write_all(peer, acknowledges_now);
        if (waited != peer.wants_to_write)
            loop_.change(line(peer), static_cast<std::uint64_t>(peer.rank), peer.wants_to_write);
    }
    void write_all(peer_state& peer, bool acknowledges_now) {
        constexpr std::size_t most_pieces = 64;
        const time_point now = acknowledges_now ? deadline::never.at : wall_clock();
        for (;;) {
            byte_view pieces[most_pieces];
            const std::size_t count = peer.talk.gather(pieces, now);
            peer.wants_to_write = count != 0;
            if (count == 0) return;
            iovec from[most_pieces];
            for (std::size_t i = 0; i < count; ++i)
                from[i] = {.iov_base = const_cast<std::byte*>(pieces[i].data()), .iov_len = pieces[i].size()};
            msghdr all{};
            all.msg_iov = from;
            all.msg_iovlen = count;
            const ssize_t sent = ::sendmsg(line(peer).get(), &all, MSG_NOSIGNAL);
            if (sent >= 0) {
                peer.talk.wrote(static_cast<std::size_t>(sent));
                continue;
            }
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                peer.is_deaf = true;
                peer.wants_to_write = false;
            }
            return;
        }
    }

    void lose(peer_state& peer) {
        shut(peer);
        if (!peer.said_goodbye) losses_.push_back(peer.rank);
    }
    /// Ends all that stands for messages from or to the peer.
    void shut(peer_state& peer) noexcept {
        if (!std::exchange(peer.is_open, false)) return;
        loop_.forget(line(peer));
        mesh_.to_peers[static_cast<std::size_t>(peer.rank)] = socket();
        peer.talk.detach();
        const auto end = [](const place_of_part& each) {
            each->ended = true;
            each->how = {};
        };
        for (const place_of_part& each : peer.receives) end(each);
        peer.receives.clear();
        if (peer.arriving != nullptr) end(peer.arriving);
        peer.arriving = peer.moves = nullptr;
    }

    mesh mesh_;
    duration farewell_{};
    std::vector<std::unique_ptr<peer_state>> peers_;
    bool has_news_ = false;  ///< something was served of which a step has not asked since
    std::deque<note> notes_;
    std::vector<std::vector<std::byte>> spare_;
    std::vector<rank_t> losses_;
    loop loop_;
    deadline timer_ = deadline::never;  ///< when something is due at the earliest
};

/// The mail engine's port over the connections of one rank. Activities are threads.
class port {
  public:
    struct request {
        connections::place_of_part receives{};
        conversation::ticket sends = 0;
        rank_t peer = no_rank;
        explicit operator bool() const { return receives != nullptr || sends != 0; }
    };
    using place = std::shared_ptr<connections>;
    using options = tcp::options;
    using library_error = tcp::library_error;
    static constexpr const char* name = "TCP";
    static constexpr const char* outlived = "the endpoint has ended";
    static constexpr bool is_simulation = false;
    static constexpr bool wakes = true;

    explicit port(const place& at) : lines_(at) {}

    rank_t rank() const { return lines_->of().rank; }
    int size() const { return lines_->of().ranks; }
    int neighbours() const { return lines_->of().neighbours; }
    static bool is_concurrent() { return true; }
    static time_point now() { return wall_clock(); }
    void configure(const options& chosen) { lines_->configure(chosen); }
    void free() {}

    request send_note(const std::byte* from, std::size_t size, rank_t peer) const {
        return {.receives = {}, .sends = lines_->send_note({from, size}, peer), .peer = peer};
    }
    mail::received_note receive_note(std::byte* into, std::size_t capacity) const {
        return lines_->take_note(into, capacity);
    }
    template <class Lock>
    void await_note(Lock& lock, deadline until) const {
        lines_->await_note(lock, until);
    }
    void wake() const noexcept { lines_->waits().wake(); }
    template <class Lock>
    void attend(Lock& lock) const {
        lines_->attend(lock);
    }
    template <class Lock>
    void rest(Lock& lock, duration time) const {
        lines_->waits().rest(lock, time);
    }
    void dismiss() const noexcept { lines_->waits().dismiss(); }
    rank_t take_loss() const { return lines_->take_loss(); }
    /// Says goodbye to all peers and closes all connections.
    void leave() const noexcept { lines_->leave(); }

    request send_part(const std::byte* from, std::size_t size, rank_t peer, std::uint32_t tag) const {
        return {.receives = {}, .sends = lines_->send_part({from, size}, peer, tag), .peer = peer};
    }
    request receive_part(std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag) const {
        return {.receives = lines_->receive_part({into, size}, peer, tag), .sends = 0, .peer = peer};
    }
    bool is_complete(request& of) const {
        if (of.sends != 0 && lines_->is_done(of.peer, of.sends)) of.sends = 0;
        if (of.receives != nullptr && of.receives->ended) of.receives = nullptr;
        return !of;
    }
    std::optional<mail::part_end> look(request& of) const {
        if (!of.receives->ended) return std::nullopt;
        return std::exchange(of.receives, nullptr)->how;
    }
    void cancel(request& of) const noexcept {
        if (of.receives != nullptr) lines_->cancel(of.receives);
    }
    /// The connections have been closed: nothing is used any more.
    static bool abandon(request& of) noexcept {
        of = {};
        return true;
    }
    [[noreturn]] static void end_job() noexcept { std::abort(); }

  private:
    std::shared_ptr<connections> lines_;
};

static_assert(mail::MailPort<port>);

using engine = mail::engine<port>;

}}}  // namespace rill::RILL_ABI::tcp::detail
