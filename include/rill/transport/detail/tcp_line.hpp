#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A connection: owns its nonblocking socket. All bytes of a connection come from it and go to it.
class line {
  public:
    static constexpr std::size_t most_pieces = 64;  ///< of one call

    line() = default;
    explicit line(socket on) : on_(std::move(on)) {}

    const socket& on() const { return on_; }
    explicit operator bool() const { return bool(on_); }

    /// Reads into pieces, one after the other. Returns how many bytes came; 0 where the other end has closed the
    /// connection; -1, with errno, where none has come (EAGAIN) or the connection is lost. Never waits.
    ssize_t read(std::span<const byte_span> into) const {
        return move(into, [this](msghdr& all) { return ::recvmsg(on_.get(), &all, 0); });
    }
    ssize_t read(byte_span into) const { return read({&into, 1}); }
    /// Writes pieces, one after the other. Returns how many bytes the system took; -1, with errno, where it takes none
    /// now (EAGAIN) or the connection is lost. Never waits.
    ssize_t write(std::span<const byte_view> from) const {
        return move(from, [this](msghdr& all) { return ::sendmsg(on_.get(), &all, MSG_NOSIGNAL); });
    }
    ssize_t write(byte_view from) const { return write({&from, 1}); }

  private:
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
};

}}}  // namespace rill::RILL_ABI::tcp::detail
