#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_arrival.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_meeting_point.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_mesh.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_refusals.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Rank 0 while the ranks meet: it listens at the meeting point until all others have told where they listen, tells
/// that to all, and ends these connections.
class meeting_host final : public arrival {
  public:
    explicit meeting_host(const options& chosen) : arrival(chosen, handshake::purpose::meeting) {
        for (rank_t peer = 0; peer < made_.ranks; ++peer) come_.push_back(expected(peer));
    }

    mesh run() {
        listen();
        while (missing() != 0) {
            if (wall_clock() >= until_) refuse_all(absence());
            take_turn(deadline::never, [&](std::uint64_t name) { listen_to(contacts::peer_of(name)); });
        }
        if (made_.listeners.empty())
            made_.listeners.push_back(contacts_->stop_listening());
        else  // the first card goes on at the meeting point too
            for (socket& each : contacts_->stop_listening()) made_.listeners.front().push_back(std::move(each));
        if (is_file(chosen_.meeting) && !made_.takes_newcomers &&
            meeting_file::read(path_of(chosen_.meeting)).incarnation == made_.own.incarnation)
            ::unlink(path_of(chosen_.meeting).c_str());
        tell_by_file();
        made_.roster.resize(static_cast<std::size_t>(chosen_.ranks));
        const std::vector<std::byte> roster = meeting_word::of_roster(made_.roster);
        for (const newcomer& each : come_)
            if (each.on) send_all(each.on, roster);  // who has ended since is missed later
        return std::move(made_);
    }

  private:
    /// A rank that has proved who it is.
    struct newcomer {
        line on{};
        meeting_reader words;
        std::uint64_t incarnation = 0, attempt = 0;
        bool has_told = false;
    };

    newcomer expected(rank_t peer) const { return {.words = meeting_reader(made_.ranks, 0, peer)}; }
    newcomer& at(rank_t peer) { return come_[static_cast<std::size_t>(peer)]; }

    void listen() {
        std::vector<socket> here;
        int reason = 0;
        for (const socket_address& each : is_file(chosen_.meeting) ? own_addresses(is_local()) : addresses()) {
            if (socket made = listen_at(each, SOMAXCONN))
                here.push_back(std::move(made));
            else if (reason != EADDRINUSE)
                reason = errno;  // other addresses may be those of other hosts
        }
        errno = reason;
        if (here.empty()) fail("cannot listen at " + chosen_.meeting + ": " + system_text());
        listen_at_cards();
        if (is_file(chosen_.meeting)) {
            meeting_file told{.job = made_.own.job, .incarnation = made_.own.incarnation};
            for (const socket& each : here) told.addresses.push_back(socket_address::local_of(each).text());
            told.write(path_of(chosen_.meeting), chosen_.rank);
        }
        made_.at(0) = own_entry();
        if (made_.listeners.empty()) made_.at(0).addresses = addresses_of(here, 0);
        contacts_->listen(std::move(here));
    }

    std::size_t missing() const {
        const auto end = come_.begin() + chosen_.ranks;
        return static_cast<std::size_t>(
            std::count_if(come_.begin() + 1, end, [](const newcomer& each) { return !each.has_told; }));
    }
    abort_notice absence() const {
        std::vector<rank_t> absent;
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
            if (!come_[static_cast<std::size_t>(peer)].has_told) absent.push_back(peer);
        std::string text = rill::detail::text_of_ranks(absent) + (absent.size() == 1 ? " has" : " have") +
                           " not come to " + chosen_.meeting + within();
        if (const int lacks = contacts_->shortage(); lacks != 0)
            return notice_of(failure::timeout, 0, text + ": rank 0 cannot accept connections: " + std::strerror(lacks));
        return notice_of(failure::timeout, absent.front(), stranger_.empty() ? text : text + ": " + stranger_);
    }

    void decide(pending_connection& guest) override {
        const handshake::identity& peer = guest.said().peer();
        const newcomer& its = at(peer.rank);
        // A dial that was given up for another one may prove itself late.
        const bool is_stale = its.incarnation == peer.incarnation && peer.attempt <= its.attempt;
        is_stale ? guest.refuse(refusal::stale) : guest.accept(0);
    }
    void came(pending_connection&& guest, bool is_told) override {
        const handshake::identity peer = guest.said().peer();
        if (!is_told) return;
        newcomer& its = at(peer.rank);
        if (its.on && its.incarnation != peer.incarnation) {
            const abort_notice twice =
                notice_of(failure::mismatch, peer.rank, text_of({"two processes say that they are rank ", peer.rank}));
            tell_refusal(guest.take(), twice);
            refuse_all(twice);
        }
        its = expected(peer.rank);
        its.incarnation = peer.incarnation;
        its.attempt = peer.attempt;
        its.on = guest.take();
        loop_.change(its.on.on(), contacts::name_of_peer(peer.rank), false);
    }
    void turned_away(const pending_connection& guest) override {
        const handshake::identity& peer = guest.said().peer();
        const refusal why = guest.said().why();
        if (why == refusal::key)
            stranger_ = peer.rank == no_rank ? "a process with another key came" : mismatch_text(why, made_.own, peer);
        if (why == refusal::security)
            stranger_ =
                std::string("a process came ") + guest_security_text(guest.said().own_mode(), guest.said().peer_mode());
        if (why == refusal::version) stranger_ = "a process with another version of rill came";
        // One that exchanges mail was in a job that has been here before; a late dial is of a rank that has come.
        if (guest.said().is_proven() && peer.why == handshake::purpose::meeting && why != refusal::stale)
            refuse_all(notice_of(failure::mismatch, peer.rank, mismatch_text(why, made_.own, peer)));
    }
    /// Reads what a rank tells that has proved who it is.
    void listen_to(rank_t peer) {
        newcomer& its = at(peer);
        try {
            if (its.has_told || !read(its.words, its.on)) {  // it is lost, and may come again
                its = expected(peer);
                return;
            }
            if (!its.words.is_whole()) return;
            const char* differs = nullptr;
            made_.at(peer) = its.words.entry(made_.alike, its.incarnation, differs);
            scope_link_local(made_.at(peer), socket_address::local_of(its.on.on()).scope(), made_.at(0).addresses);
            if (differs != nullptr)
                refuse_all(
                    notice_of(failure::mismatch, peer, text_of({"rank ", peer, " has another value of ", differs})));
        } catch (const protocol_error& caught) {
            tell_all(caught.notice());
            throw;
        }
        its.has_told = true;
    }

    static void tell_refusal(const line& to, const abort_notice& why) { to.write_last(meeting_word::of_refusal(why)); }
    void tell_all(const abort_notice& why) const {
        for (const newcomer& each : come_)
            if (each.on) tell_refusal(each.on, why);
    }
    [[noreturn]] void refuse_all(const abort_notice& why) const {
        tell_all(why);
        throw_error(why);
    }

    std::vector<newcomer> come_;  ///< by rank
    std::string stranger_{};      ///< what somebody lacked who could not prove that it belongs to the job
};

}}}  // namespace rill::RILL_ABI::tcp::detail
