// Sockets of the system: names, addresses, listening, connecting. Nothing here waits but `wait_for`.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

inline time_point wall_clock() { return {duration(std::chrono::steady_clock::now().time_since_epoch()).ns}; }

/// Fills memory with random bytes that nobody can guess.
inline void fill_with_random(byte_span to) {
    // One call gives up to 256 bytes whole.
    for (; !to.empty(); to = to.subspan(std::min<std::size_t>(256, to.size())))
        if (const std::size_t count = std::min<std::size_t>(256, to.size());
            ::getrandom(to.data(), count, 0) != static_cast<ssize_t>(count))
            throw library_error(no_rank, std::string("cannot get random bytes: ") + std::strerror(errno));
}
inline std::uint64_t random_number() {
    std::array<std::byte, 8> bytes;
    fill_with_random(bytes);
    return std::bit_cast<std::uint64_t>(bytes);
}

/// Owns a descriptor.
class socket {
  public:
    socket() = default;
    explicit socket(int descriptor) : descriptor_(descriptor) {}
    socket(socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    socket& operator=(socket&& other) noexcept {
        socket moved(std::move(other));
        std::swap(descriptor_, moved.descriptor_);
        return *this;
    }
    ~socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }

  private:
    int descriptor_ = -1;
};

/// An address with a port, IPv4 or IPv6.
struct socket_address {
    sockaddr_storage bytes{};
    socklen_t size = 0;

    const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&bytes); }
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }
    bool is_v6() const { return bytes.ss_family == AF_INET6; }
    std::uint16_t port() const {
        return ntohs(is_v6() ? reinterpret_cast<const sockaddr_in6&>(bytes).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(bytes).sin_port);
    }
    void set_port(std::uint16_t port) {
        (is_v6() ? reinterpret_cast<sockaddr_in6&>(bytes).sin6_port : reinterpret_cast<sockaddr_in&>(bytes).sin_port) =
            htons(port);
    }
    bool is_loopback() const {
        if (is_v6()) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(bytes).sin6_addr) != 0;
        return (ntohl(reinterpret_cast<const sockaddr_in&>(bytes).sin_addr.s_addr) >> 24) == 127;
    }
    bool is_link_local() const {
        return is_v6() && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(bytes).sin6_addr) != 0;
    }
    /// The interface of a link-local address.
    std::uint32_t scope() const { return is_v6() ? reinterpret_cast<const sockaddr_in6&>(bytes).sin6_scope_id : 0; }
    /// As `resolve` reads it.
    std::string text() const {
        char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
        ::getnameinfo(raw(), size, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
        return (is_v6() ? "[" + std::string(host) + "]" : std::string(host)) + ":" + service;
    }
    static socket_address local_of(const socket& of) { return told_by(::getsockname, of); }
    static socket_address peer_of(const socket& of) { return told_by(::getpeername, of); }

  private:
    static socket_address told_by(int (*call)(int, sockaddr*, socklen_t*), const socket& of) {
        socket_address found;
        found.size = sizeof found.bytes;
        call(of.get(), found.raw(), &found.size);
        return found;
    }
};

/// The port of a meeting point; throws `library_error` where it is not a number from `least` on.
inline std::uint16_t port_of(const std::string& point, rank_t rank, std::uint16_t least = 0) {
    const std::size_t colon = point.rfind(':');
    const char* const end = point.data() + point.size();
    std::uint16_t port = 0;
    const auto [rest, failed] = std::from_chars(colon == std::string::npos ? end : &point[colon + 1], end, port);
    if (failed != std::errc{} || rest != end || port < least)
        throw library_error(rank, point.empty() ? "the meeting point is empty: give it as HOST:PORT or file:PATH"
                                                : "the meeting point " + point + " has no port from 1 to 65535");
    return port;
}

/// The addresses of a host, with a port; `flags` are those of `getaddrinfo`. Where it fails, returns its number.
inline int look_up(const std::string& host, std::uint16_t port, int flags, std::vector<socket_address>& all) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV | flags;
    addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
    if (failed != 0) return failed;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        socket_address& made = all.emplace_back();
        std::memcpy(&made.bytes, each->ai_addr, each->ai_addrlen);
        made.size = each->ai_addrlen;
    }
    ::freeaddrinfo(found);
    return 0;
}

/// All addresses of a meeting point, `host:port` or `[address]:port`; of a link-local one `[address%interface]:port`.
inline std::vector<socket_address> resolve(const std::string& point, rank_t rank) {
    const std::uint16_t port = port_of(point, rank);
    std::string host = point.substr(0, point.rfind(':'));
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    std::vector<socket_address> all;
    if (const int failed = look_up(host, port, 0, all); failed != 0)
        throw library_error(rank, "the meeting point " + point + " is unknown: " + ::gai_strerror(failed));
    return all;
}

inline std::string system_text() { return std::strerror(errno); }

inline socket make_socket(const socket_address& of) {
    return socket(::socket(of.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// Empty, with errno, where it fails.
inline socket listen_at(const socket_address& at, int backlog) {
    socket made = make_socket(at);
    const int on = 1;
    if (!made) return made;
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(made.get(), at.raw(), at.size) != 0 || ::listen(made.get(), backlog) != 0) {
        const int failed = errno;
        made = socket();
        errno = failed;
    }
    return made;
}

/// A socket whose connection to an address is under way; empty, with errno, where it fails at once.
inline socket start_connecting(const socket_address& at) {
    socket made = make_socket(at);
    if (made && ::connect(made.get(), at.raw(), at.size) != 0 && errno != EINPROGRESS) {
        const int failed = errno;
        made = socket();
        errno = failed;
    }
    return made;
}

/// Waits until any of the descriptors is ready, or `until`, and at most 100 ms.
inline void wait_for(std::span<pollfd> any, time_point until) {
    const std::int64_t left = (until - wall_clock()).ns / 1'000'000 + 1;
    ::poll(any.data(), any.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 100)));
}

/// Sends small segments at once; ends connections to hosts that do not answer for `patience`.
inline void tune(const socket& of, duration patience) {
    const auto set = [&](int level, int name, std::int64_t value) {
        const int chosen = static_cast<int>(std::clamp<std::int64_t>(value, 1, 1 << 30));
        ::setsockopt(of.get(), level, name, &chosen, sizeof chosen);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, patience.ns / 1'000'000);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, patience.ns / 2'000'000'000);
    set(IPPROTO_TCP, TCP_KEEPINTVL, patience.ns / 4'000'000'000);
    set(IPPROTO_TCP, TCP_KEEPCNT, 2);
}

/// The system takes only little more than it can send: what waits goes to the connection that is free first.
inline void hold_back(const socket& of) {
    const int most_unsent = 128 << 10;
    ::setsockopt(of.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent, sizeof most_unsent);
}

}}}  // namespace rill::RILL_ABI::tcp::detail
