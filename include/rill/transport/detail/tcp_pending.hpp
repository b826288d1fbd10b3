// Sockets on which a handshake is under way, and how many of them strangers may hold.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_socket.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <variant>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// With what a rank secures its connections. Both must outlive them.
struct credentials {
    handshake::prover proves{};
    const tls_context* encrypts = nullptr;  ///< null: nothing is encrypted

    credentials() = default;
    credentials(const handshake::prover& key, const tls_context* encryption = nullptr)
        : proves(key), encrypts(encryption) {}
};

/// A nonblocking socket and the handshake on it. Its owner waits for what it wants, calls `proceed`, answers where it
/// asks, and takes the socket when it has agreed.
class pending_connection {
  public:
    using state = handshake::state;
    using host = std::pair<bool, std::uint64_t>;

    /// Over a socket whose connection may still be under way.
    static pending_connection dialled(socket on, const handshake::identity& own, const dialer::expected& peer,
                                      const credentials& by, time_point since) {
        return {secured(std::move(on), by, true), dialer(said_by(own, by), peer, by.proves, fresh_nonce()), since, {}};
    }
    static pending_connection accepted(socket on, const handshake::identity& own, const credentials& by,
                                       time_point since) {
        const host from = host_of(on);
        return {secured(std::move(on), by, false), acceptor(said_by(own, by), by.proves, fresh_nonce()), since, from};
    }

    const socket& on() const { return on_.on(); }
    time_point since() const { return since_; }
    /// The address of who dialled this end; of IPv6 its first half, because who holds one address holds all of them.
    const host& from() const { return from_; }
    /// What happened so far: see `handshake`.
    const handshake& said() const {
        return std::visit([](const auto& end) -> const handshake& { return end; }, end_);
    }
    state now() const { return said().now(); }
    /// Whether it has agreed or refused, and said so.
    bool is_settled() const {
        return (now() == state::agreed || now() == state::refused) && said().outgoing().empty() && !on_.owes();
    }
    /// The events of `poll` after which `proceed` has something to do. None where it asks.
    short wanted() const {
        const tls* const by = on_.encryption();
        const bool greets = by != nullptr && by->now() == tls::state::greets && now() != state::refused;
        if (on_.owes() || (!greets && !said().outgoing().empty())) return POLLOUT;
        return said().wanted() != 0 ? POLLIN : 0;
    }

    /// Reads and writes what the socket allows; never a byte behind the handshake. False, with errno (0: the other end
    /// has closed it), where the connection is lost.
    bool proceed() {
        while (const short next = wanted()) {
            const ssize_t moved = next == POLLOUT ? write() : read();
            if (moved > 0) continue;
            if (moved == 0) errno = 0;
            if (errno == EPROTO && now() == state::refused) continue;  // TLS may have an alert to say
            if (errno != EAGAIN) return false;
            if (wanted() == next) return true;
        }
        if (now() == state::refused) drain();
        return true;
    }

    // Answers where it asks; then call `proceed`.

    void prove(std::uint64_t taken) { std::get<dialer>(end_).prove(taken); }
    void accept(std::uint64_t taken) { std::get<acceptor>(end_).accept(taken); }
    void refuse(handshake::refusal reason) { std::get<acceptor>(end_).refuse(reason); }

    /// The connection, once the handshake has agreed and is settled. Bytes that follow may have left the socket: see
    /// `line::holds`.
    line take() {
        RILL_EXPECTS(now() == state::agreed && is_settled(), "tcp: a connection that is not agreed is not taken");
        if (on_.encryption() != nullptr) on_.encryption()->trust();
        return std::move(on_);
    }

  private:
    pending_connection(line on, std::variant<dialer, acceptor> end, time_point since, host from)
        : on_(std::move(on)), end_(std::move(end)), since_(since), from_(from) {}

    static line secured(socket on, const credentials& by, bool dials) {
        return line(std::move(on), by.encrypts != nullptr ? std::make_unique<tls>(*by.encrypts, dials) : nullptr);
    }
    static handshake::identity said_by(handshake::identity own, const credentials& by) {
        own.encrypts = by.encrypts != nullptr;
        return own;
    }
    static host host_of(const socket& on) {
        const socket_address from = socket_address::peer_of(on);
        if (!from.is_v6()) return {false, reinterpret_cast<const sockaddr_in&>(from.bytes).sin_addr.s_addr};
        const auto& all = reinterpret_cast<const sockaddr_in6&>(from.bytes).sin6_addr.s6_addr;
        return {true, get(reinterpret_cast<const std::byte*>(all), 8)};
    }
    static handshake::nonce fresh_nonce() {
        handshake::nonce made;
        fill_with_random(made);
        return made;
    }
    handshake& end() {
        return std::visit([](auto& any) -> handshake& { return any; }, end_);
    }
    ssize_t write() {
        if (on_.owes() || said().outgoing().empty()) return on_.flush() ? 1 : -1;
        const ssize_t sent = on_.write(said().outgoing());
        if (sent > 0) end().wrote(static_cast<std::size_t>(sent));
        return sent;
    }
    ssize_t read() {
        std::byte bytes[handshake::hello_bytes];
        const ssize_t got = on_.read(byte_span(bytes).first(std::min(sizeof bytes, said().wanted())));
        const bool is_broken = got < 0 && errno == EPROTO;
        const tls* const by = on_.encryption();
        if (by != nullptr && by->now() == tls::state::ready && !said().is_bound()) end().bind(by->exported());
        if (got > 0) std::visit([&](auto& any) { any.arrived({bytes, static_cast<std::size_t>(got)}); }, end_);
        if (is_broken) {
            end().fail(by->has_other_secret() ? handshake::refusal::key : handshake::refusal::foreign);
            errno = EPROTO;
        }
        return got;
    }
    /// Takes what has come: a socket that is closed before loses what was written last. Who sends without end loses it.
    void drain() {
        std::byte bytes[4096];
        for (int i = 0; i < 16 && on_.read(bytes) > 0; ++i) continue;
    }

    line on_;
    std::variant<dialer, acceptor> end_;
    time_point since_;
    host from_;
};

/// The connections that were accepted and have proved nothing yet. Each has a limited time, and there are at most
/// max(64, 2 x ranks) of them: one more pushes out one of those that come from the address with most, at random, so
/// that strangers keep out each other rather than a rank, which dials again. Memory: about 800 bytes each, 46 KiB where
/// they are encrypted.
class reception {
  public:
    static constexpr duration most_time = seconds(5);
    static constexpr int most_at_once = 16;  ///< to accept before others get their turn

    explicit reception(rank_t ranks) : most_(std::max<std::size_t>(64, 2 * static_cast<std::size_t>(ranks))) {}

    std::size_t most() const { return most_; }
    /// Those that wait, the oldest first. Erase one to close it.
    std::list<pending_connection>& waiting() { return waiting_; }
    const std::list<pending_connection>& waiting() const { return waiting_; }
    void admit(pending_connection&& made) {
        if (waiting_.size() == most_) push_one_out();
        waiting_.push_back(std::move(made));
    }
    /// Closes those whose time is over.
    void drop_late(time_point now) {
        waiting_.remove_if([&](const pending_connection& each) { return each.since() + most_time <= now; });
    }

  private:
    void push_one_out() {
        std::map<pending_connection::host, std::size_t> counts;
        for (const pending_connection& each : waiting_) ++counts[each.from()];
        const auto fewer = [](const auto& left, const auto& right) { return left.second < right.second; };
        const auto [crowd, count] = *std::max_element(counts.begin(), counts.end(), fewer);
        std::size_t skipped = random_number() % count;
        waiting_.erase(std::find_if(waiting_.begin(), waiting_.end(), [&](const pending_connection& each) {
            return each.from() == crowd && skipped-- == 0;
        }));
    }

    std::size_t most_;
    std::list<pending_connection> waiting_;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
