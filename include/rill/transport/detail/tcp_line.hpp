#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/transport/detail/tcp_socket.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A connection: owns its nonblocking socket, and what encrypts it where it is encrypted. All bytes of a connection
/// come from it and go to it.
class line {
  public:
    static constexpr std::size_t most_pieces = 64;  ///< of one call

    line() = default;
    explicit line(socket on, std::unique_ptr<tls> by = nullptr) : on_(std::move(on)), tls_(std::move(by)) {}

    const socket& on() const { return on_; }
    explicit operator bool() const { return bool(on_); }
    /// Null where the connection is not encrypted.
    tls* encryption() const { return tls_.get(); }

    /// Reads into pieces, one after the other. Returns how many bytes came; 0 where the other end has closed the
    /// connection; -1, with errno, where none has come (EAGAIN), the connection is lost, or what came was not encrypted
    /// by the other end (EPROTO). Never waits.
    ssize_t read(std::span<const byte_span> into) const { return tls_ != nullptr ? decrypt(into) : receive(into); }
    ssize_t read(byte_span into) const { return read({&into, 1}); }
    /// Whether bytes that have left the socket may wait for `read`: the system does not tell of them.
    bool holds() const { return tls_ != nullptr && tls_->holds(); }
    /// Writes pieces, one after the other. Returns how many bytes were taken; -1, with errno, where none is taken now
    /// (EAGAIN) or the connection is lost. Never waits.
    ssize_t write(std::span<const byte_view> from) const {
        if (tls_ == nullptr) return send(from);
        if (!flush()) return -1;
        const std::size_t said = tls_->say(from);
        if (tls_->now() == tls::state::greets || tls_->now() == tls::state::failed) {
            errno = tls_->now() == tls::state::greets ? EAGAIN : EPROTO;
            return -1;
        }
        flush();
        return static_cast<ssize_t>(said);
    }
    ssize_t write(byte_view from) const { return write({&from, 1}); }
    /// Whether the system has not yet taken all that was written: wait until it does, then call `flush`.
    bool owes() const { return tls_ != nullptr && !tls_->outgoing().empty(); }
    /// Gives the system what is owed; false, with errno, where it does not take all of it.
    bool flush() const {
        while (owes()) {
            const byte_view rest = tls_->outgoing();
            const ssize_t sent = send({&rest, 1});
            if (sent < 0) return false;
            tls_->wrote(static_cast<std::size_t>(sent));
        }
        return true;
    }

    /// Writes bytes behind which nothing follows. An empty buffer of the system takes them whole, unless they are more
    /// than `net.core.wmem_max` lets it hold.
    void write_last(byte_view bytes) const {
        const int room = static_cast<int>(bytes.size()) + 4096;
        ::setsockopt(on_.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        for (ssize_t taken; !bytes.empty() && (taken = write(bytes)) > 0;)
            bytes = bytes.subspan(static_cast<std::size_t>(taken));
        ::shutdown(on_.get(), SHUT_WR);
        std::byte rest[1024];  // what is not read would take these bytes away
        while (read(rest) > 0) {
        }
    }

  private:
    ssize_t receive(std::span<const byte_span> into) const {
        return move(into, [this](msghdr& all) { return ::recvmsg(on_.get(), &all, 0); });
    }
    ssize_t send(std::span<const byte_view> from) const {
        return move(from, [this](msghdr& all) { return ::sendmsg(on_.get(), &all, MSG_NOSIGNAL); });
    }
    ssize_t decrypt(std::span<const byte_span> into) const {
        for (;;) {
            if (const std::size_t count = tls_->take(into.front()); count != 0) return static_cast<ssize_t>(count);
            const byte_span room = tls_->room();
            if (room.empty()) {
                errno = EPROTO;
                return -1;
            }
            const ssize_t got = receive({&room, 1});
            if (got <= 0) return got;
            tls_->arrived(static_cast<std::size_t>(got));
            flush();  // what TLS answers
        }
    }
    template <class Piece, class Call>
    static ssize_t move(std::span<const Piece> pieces, Call&& call) {
        RILL_EXPECTS(pieces.size() <= most_pieces, "tcp: more pieces than one call takes");
        iovec each[most_pieces];
        for (std::size_t i = 0; i < pieces.size(); ++i)
            each[i] = {.iov_base = const_cast<std::byte*>(pieces[i].data()), .iov_len = pieces[i].size()};
        msghdr all{};
        all.msg_iov = each;
        all.msg_iovlen = pieces.size();
        ssize_t moved = -1;
        do moved = call(all);
        while (moved < 0 && errno == EINTR);
        return moved;
    }

    socket on_;
    std::unique_ptr<tls> tls_{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
