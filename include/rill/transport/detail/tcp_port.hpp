#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/tcp_connections.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

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
    void configure(const options&) { lines_->open(); }
    void free() {}

    request send_note(const std::byte* from, std::size_t size, rank_t peer) const {
        return {.receives = {}, .sends = lines_->send_note({from, size}, peer), .peer = peer};
    }
    mail::received_note receive_note(std::byte* into, std::size_t capacity) const {
        return lines_->take_note(into, capacity);
    }
    void look() const { lines_->look(); }
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
    void watch(rank_t peer) const { lines_->watch(peer); }
    rank_t take_loss() const { return lines_->take_loss(); }
    rank_t take_goodbye() const { return lines_->take_goodbye(); }
    std::uint64_t incarnation(rank_t peer) const { return lines_->incarnation(peer); }
    void monitor() const { lines_->keep_silent_peers(); }
    void copy_all(rank_t peer) const { lines_->copy_all(peer); }
    bool move(const request& of, byte_span to) const { return lines_->move(of.receives, to); }
    bool takes_newcomers() const { return lines_->of().takes_newcomers; }
    mail::peer_news take_news() const { return lines_->take_news(); }
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

static_assert(mail::MonitoringPort<port>);

using engine = mail::engine<port>;

}}}  // namespace rill::RILL_ABI::tcp::detail
