#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_admissions.hpp>
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

#include <fcntl.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A process that joins when the ranks have met: it dials the meeting points, or where the meeting file says. Who
/// answers there tells it of all processes of the job, and it asks each of these for its seat. It has joined when each
/// that it knows has admitted it, has ended, or has not answered for `options::patience`.
///
/// Meanwhile it answers others that join, once a rank of the job has admitted it: two that know of each other would
/// otherwise wait for each other.
class joining final : public arrival, admissions::owner {
  public:
    explicit joining(const options& chosen) : arrival(chosen, handshake::purpose::join), newcomers_(loop_, made_) {
        for (rank_t peer = 0; peer < made_.ranks; ++peer) asked_.push_back(unasked(peer));
    }

    mesh run() {
        listen_at_cards();
        if (!made_.listeners.empty()) begin_to_answer();
        while (!has_joined()) {
            const time_point now = wall_clock();
            if (now >= until_) fail_for_absence(no_rank, "no rank answers at ");
            if (knows_no_member()) look_for_members();
            newcomers_.drop_late(now);
            take_turn(forget_silent(now), [&](std::uint64_t name) {
                contacts::is_newcomer(name) ? newcomers_.serve(name, *this) : hear(contacts::peer_of(name));
            });
        }
        contacts_->stop_listening();
        tell_by_file();
        return std::move(made_);
    }

  private:
    /// What another process has said about the seat.
    struct asked {
        line on{};
        meeting_reader words;
        std::uint64_t incarnation = 0;
        time_point since = wall_clock();
        bool has_told = false;  ///< each has admitted the other
        bool joins = false;     ///< it had not joined either when it was asked
    };

    asked unasked(rank_t peer) const {
        constexpr bool is_host = false;
        return {.words = meeting_reader(made_.ranks, chosen_.rank, peer, is_host)};
    }
    asked& at(rank_t peer) { return asked_[static_cast<std::size_t>(peer)]; }
    /// For the contacts: any process that answers.
    rank_t anybody() const { return chosen_.rank; }

    template <class Holds>
    bool any_known(Holds&& holds) const {
        return std::any_of(made_.roster.begin(), made_.roster.end(), [&](const roster_entry& each) {
            return each.incarnation != 0 && holds(asked_[static_cast<std::size_t>(each.rank)]);
        });
    }
    /// Whether no process has told of a rank that had joined before, or all such ranks have ended.
    bool knows_no_member() const {
        return !any_known([](const asked& its) { return !its.joins; });
    }
    bool has_joined() const {
        return !knows_no_member() && !any_known([](const asked& its) { return !its.has_told; });
    }

    // Asking.

    void look_for_members() {
        if (is_file(chosen_.meeting)) return dial_by_file(anybody(), false);
        if (!contacts_->dials(anybody())) contacts_->dial(anybody(), addresses(), 0, wall_clock(), *this);
    }
    void dialled(rank_t, pending_connection&& made) override {
        const handshake::identity peer = made.said().peer();
        asked& its = at(peer.rank);
        const bool joins = peer.why == handshake::purpose::join;
        if (its.on || its.has_told) {
            its.joins &= joins;
            return;
        }
        its = unasked(peer.rank);
        its.on = made.take();
        its.incarnation = peer.incarnation;
        its.joins = joins;
        loop_.change(its.on.on(), contacts::name_of_peer(peer.rank), false);
        if (made_.listeners.empty()) {
            listen_beside(its.on);
            begin_to_answer();
        }
        send_own_entry(its.on);  // where the connection is lost, `hear` finds it
    }
    void hear(rank_t peer) {
        asked& its = at(peer);
        if (!its.on) return;
        if (!read(its.words, its.on)) {
            its.on = line();
            return dial(peer);
        }
        if (!its.words.is_whole()) return;
        if (its.words.kind() == meeting_word::kind::refusal) throw_error(its.words.refusal());
        its.has_told = true;
        contacts_->stop(anybody());
        const std::uint32_t scope = socket_address::peer_of(its.on.on()).scope();
        for (roster_entry& each : its.words.roster_of_some()) {
            roster_entry& known = made_.at(each.rank);
            if (known.incarnation != 0) continue;
            scope_link_local(each, scope, made_.at(chosen_.rank).addresses);
            known = std::move(each);
            at(known.rank).since = wall_clock();
            if (!at(known.rank).has_told && !at(known.rank).on) dial(known.rank);
        }
        roster_entry& entry = made_.at(peer);
        if (entry.incarnation != its.incarnation) entry = {};  // it has gone, and begun anew
        if (entry.incarnation != 0) reach_as_before(entry, its.on);
        its.on = line();
    }
    void dial(rank_t peer) {
        const roster_entry& whom = made_.at(peer);
        std::vector<socket_address> all;
        for (const roster_address& each : whom.addresses) all.push_back(socket_address_of(each));
        if (!all.empty()) contacts_->dial(peer, all, whom.incarnation, wall_clock(), *this);
    }
    /// A process of the roster that does not listen any more has ended.
    void unreachable(rank_t peer, int rounds) override {
        if (peer != anybody() && rounds >= 2) forget(peer);
    }
    void forget(rank_t peer) {
        contacts_->stop(peer);
        made_.at(peer) = {};
        at(peer) = unasked(peer);
    }
    /// Returns when it has something to do again.
    deadline forget_silent(time_point now) {
        deadline next = deadline::never;
        for (rank_t peer = 0; peer < made_.ranks; ++peer) {
            if (made_.at(peer).incarnation == 0 || at(peer).has_told) continue;
            const deadline due = at(peer).since + chosen_.patience;
            due.at <= now ? forget(peer) : void(next = std::min(next, due));
        }
        return next;
    }
    void refused(rank_t peer, const handshake& by) override {
        if (!is_for_good(peer, by)) return;
        trouble_ = refusal_text(by, made_.own);
        if (is_final(by) && (peer != anybody() || !is_list(chosen_.meeting))) fail_as_odd();
    }
    /// Whether a later dial will be refused, too. The process that sat on the seat before may have ended just now; then
    /// the others need a while to notice it.
    bool is_for_good(rank_t peer, const handshake& by) {
        const bool is_seated =
            by.why() == refusal::seated || (by.why() == refusal::rank && by.peer().rank == chosen_.rank);
        if (is_seated) {
            trouble_ = text_of({"a process that has not ended is rank ", chosen_.rank, " of this job"});
            if (gives_up_.is_never()) gives_up_ = wall_clock() + chosen_.patience + seconds(1);
            if (wall_clock() >= gives_up_.at) fail_as_odd();
            at(peer).since = wall_clock();  // it answers
            return false;
        }
        if (by.why() == refusal::purpose) {
            trouble_ = "the ranks have not met yet, or options::seats is 0 there";
            return false;
        }
        if (by.why() == refusal::incarnation && peer != anybody()) {  // it has begun anew
            forget(peer);
            return false;
        }
        return true;
    }

    // Answering others that join.

    void begin_to_answer() {
        made_.at(chosen_.rank) = own_entry();
        at(chosen_.rank).has_told = at(chosen_.rank).joins = true;
        for (const std::vector<socket>& card : made_.listeners)
            for (const socket& each : card)
                if (socket copy(::fcntl(each.get(), F_DUPFD_CLOEXEC, 0)); copy) contacts_->listen_also(std::move(copy));
    }
    void decide(pending_connection& guest) override {
        if (guest.said().peer().why == handshake::purpose::join) return admissions::decide(guest, *this);
        guest.refuse(refusal::purpose);  // a rank that has admitted this one dials it again
    }
    void came(pending_connection&& guest, bool is_told) override {
        if (is_told) newcomers_.begin(std::move(guest));
    }
    refusal fault_of_newcomer(rank_t rank, std::uint64_t incarnation) override {
        if (!any_known([](const asked& its) { return !its.joins && its.has_told; })) return refusal::purpose;
        const std::uint64_t known = made_.at(rank).incarnation;
        return known == 0 || known == incarnation ? refusal::none : refusal::seated;
    }
    void seat(roster_entry&& newcomer) override {
        const rank_t rank = newcomer.rank;
        contacts_->stop(rank);
        at(rank) = unasked(rank);
        at(rank).incarnation = newcomer.incarnation;
        at(rank).has_told = at(rank).joins = true;
        if (made_.at(rank).incarnation == 0) made_.at(rank) = std::move(newcomer);
    }
    std::vector<roster_entry> seated() override {
        std::vector<roster_entry> all;
        for (const roster_entry& each : made_.roster)
            if (each.incarnation != 0) all.push_back(each);
        return all;
    }

    admissions newcomers_;
    std::vector<asked> asked_;             ///< by rank
    deadline gives_up_ = deadline::never;  ///< where its seat is taken
};

}}}  // namespace rill::RILL_ABI::tcp::detail
