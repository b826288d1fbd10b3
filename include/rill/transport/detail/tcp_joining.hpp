#pragma once

#include <rill/core/config.hpp>
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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A process that joins when the ranks have met: it dials the meeting points. Who answers there tells it of all ranks.
/// It then asks each of these for its seat.
class joining final : public arrival {
  public:
    explicit joining(const options& chosen) : arrival(chosen, handshake::purpose::join) {
        for (rank_t member = 0; member < made_.ranks; ++member) asked_.push_back(unasked(member));
    }

    mesh run() {
        listen_at_cards();
        while (!has_joined()) {
            if (wall_clock() >= until_) fail_for_absence(no_rank, "no rank answers at ");
            if (knows_nobody()) look_for_members();
            take_turn([&](std::uint64_t name) { hear(contacts::peer_of(name)); });
        }
        made_.at(chosen_.rank) = own_entry();
        return std::move(made_);
    }

  private:
    /// What a member has said about the seat.
    struct asked {
        line on{};
        meeting_reader words;
        std::uint64_t incarnation = 0;
        bool has_told = false;
    };

    asked unasked(rank_t member) const {
        constexpr bool is_host = false;
        return {.words = meeting_reader(made_.ranks, chosen_.rank, member, is_host)};
    }
    asked& at(rank_t member) { return asked_[static_cast<std::size_t>(member)]; }
    /// For the contacts: any rank that answers.
    rank_t anybody() const { return chosen_.rank; }

    /// Whether no member has told this rank of others, or all that it knows have ended.
    bool knows_nobody() const {
        return std::none_of(made_.roster.begin(), made_.roster.end(),
                            [](const roster_entry& each) { return each.incarnation != 0; });
    }
    bool has_joined() const {
        if (knows_nobody()) return false;
        for (const roster_entry& each : made_.roster)
            if (each.incarnation != 0 && !asked_[static_cast<std::size_t>(each.rank)].has_told) return false;
        return true;
    }
    void look_for_members() {
        if (is_file(chosen_.meeting)) return dial_by_file(anybody());
        if (!contacts_->dials(anybody())) contacts_->dial(anybody(), addresses(), 0, wall_clock(), *this);
    }
    void dialled(rank_t, pending_connection&& made) override {
        const handshake::identity member = made.said().peer();
        asked& its = at(member.rank);
        if (its.on || its.has_told) return;
        its = unasked(member.rank);
        its.on = made.take();
        its.incarnation = member.incarnation;
        loop_.change(its.on.on(), contacts::name_of_peer(member.rank), false);
        listen_beside(its.on);
        send_own_entry(its.on);  // where the connection is lost, `hear` finds it
    }
    void hear(rank_t member) {
        asked& its = at(member);
        if (!its.on) return;
        if (!read(its.words, its.on)) {
            its.on = line();
            return dial(member);
        }
        if (!its.words.is_whole()) return;
        if (its.words.kind() == meeting_word::kind::refusal) fail_as_told(its.words);
        its.has_told = true;
        contacts_->stop(anybody());
        const std::uint32_t scope = socket_address::peer_of(its.on.on()).scope();
        const std::vector<roster_address> here = own_entry().addresses;
        for (roster_entry& each : its.words.roster_of_some()) {
            roster_entry& known = made_.at(each.rank);
            if (each.rank == chosen_.rank || known.incarnation != 0) continue;
            scope_link_local(each, scope, here);
            known = std::move(each);
            if (!at(known.rank).has_told && !at(known.rank).on) dial(known.rank);
        }
        roster_entry& own = made_.at(member);
        if (own.incarnation != its.incarnation) own = {};  // it has gone, and begun anew
        if (own.incarnation != 0) reach_as_before(own, its.on);
        its.on = line();
    }
    void dial(rank_t member) {
        const roster_entry& whom = made_.at(member);
        std::vector<socket_address> all;
        for (const roster_address& each : whom.addresses)  // only the first network card takes processes that join
            if (each.card == 0) all.push_back(socket_address_of(each));
        if (!all.empty()) contacts_->dial(member, all, whom.incarnation, wall_clock(), *this);
    }
    /// A member of the roster that does not listen any more has ended.
    void unreachable(rank_t member, int rounds) override {
        if (member != anybody() && rounds >= 2) forget(member);
    }
    void forget(rank_t member) {
        contacts_->stop(member);
        made_.at(member) = {};
        at(member) = unasked(member);
    }
    void refused(rank_t member, const handshake& by) override {
        if (!is_for_good(member, by)) return;
        trouble_ = refusal_text(by, made_.own);
        if (is_final(by)) fail_for_all(failure::mismatch, trouble_);
    }
    /// Whether a later dial will be refused, too. The process that sat on the seat before may have ended just now; then
    /// the others need a while to notice it.
    bool is_for_good(rank_t member, const handshake& by) {
        const bool is_seated =
            by.why() == refusal::seated || (by.why() == refusal::rank && by.peer().rank == chosen_.rank);
        if (is_seated) {
            trouble_ = text_of({"a process that has not ended is rank ", chosen_.rank, " of this job"});
            if (gives_up_.is_never()) gives_up_ = wall_clock() + chosen_.patience + seconds(1);
            if (wall_clock() >= gives_up_.at) fail_for_all(failure::mismatch, trouble_);
            return false;
        }
        if (by.why() == refusal::purpose) {
            trouble_ = "the ranks have not met yet, or options::seats is 0 there";
            return false;
        }
        if (by.why() == refusal::incarnation && member != anybody()) {  // it has begun anew
            forget(member);
            return false;
        }
        return true;
    }

    std::vector<asked> asked_;             ///< by rank
    deadline gives_up_ = deadline::never;  ///< where its seat is taken
};

}}}  // namespace rill::RILL_ABI::tcp::detail
