// How the ranks of a job come together.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting_point.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What one rank knows of all others when they have met: what it takes to make connections.
struct mesh {
    rank_t rank = 0;
    int ranks = 1;                                 ///< seats
    int neighbours = 1;                            ///< ranks of this host, this one included
    std::vector<std::vector<socket>> listeners{};  ///< where peers reach this rank, by network card
    std::vector<roster_entry> roster{};  ///< by rank: where this rank reaches its peers; on a free seat incarnation 0
    handshake::identity own{};           ///< says `purpose::mail`
    bool takes_newcomers = false;
    std::vector<meeting_word::option> alike{};  ///< what a newcomer must have alike
    tcp::key secret{};
    std::unique_ptr<tls_context> encrypts{};  ///< null: nothing is encrypted

    credentials security() const { return {secret.prover(), encrypts.get()}; }
};

inline roster_address roster_address_of(const socket_address& from) {
    roster_address made{.is_v6 = from.is_v6(), .port = from.port()};
    if (made.is_v6) {
        const auto& raw = reinterpret_cast<const sockaddr_in6&>(from.bytes);
        std::memcpy(made.bytes.data(), &raw.sin6_addr, 16);
        made.scope = raw.sin6_scope_id;
    } else {
        std::memcpy(made.bytes.data(), &reinterpret_cast<const sockaddr_in&>(from.bytes).sin_addr, 4);
    }
    return made;
}
inline socket_address socket_address_of(const roster_address& from) {
    socket_address made;
    if (from.is_v6) {
        auto& raw = reinterpret_cast<sockaddr_in6&>(made.bytes);
        raw.sin6_family = AF_INET6;
        std::memcpy(&raw.sin6_addr, from.bytes.data(), 16);
        raw.sin6_scope_id = from.scope;
        made.size = sizeof raw;
    } else {
        auto& raw = reinterpret_cast<sockaddr_in&>(made.bytes);
        raw.sin_family = AF_INET;
        std::memcpy(&raw.sin_addr, from.bytes.data(), 4);
        made.size = sizeof raw;
    }
    made.set_port(from.port);
    return made;
}

/// Link-local addresses of other hosts are reached by the interface with this number: theirs is another. Those of
/// several network cards are reached by the own card of the same number, of which `own` are addresses.
inline void scope_link_local(roster_entry& of, std::uint32_t scope, const std::vector<roster_address>& own) {
    for (roster_address& each : of.addresses) {
        if (!socket_address_of(each).is_link_local()) continue;
        each.scope = scope;
        for (const roster_address& mine : own)
            if (mine.card == each.card && socket_address_of(mine).is_link_local()) each.scope = mine.scope;
    }
}

/// Brings the ranks together: each connects to rank 0, which tells all where all listen, and ends these connections.
/// The deadline is that of the whole meeting: no arrival prolongs it. Who dials and does not prove that it has the
/// job's key changes nothing but the text of an error.
///
/// A rank that joins when the others have met dials the meeting points. Who answers there tells it of all ranks. It
/// then asks each of these for its seat.
class meeting final : contacts::owner {
  public:
    explicit meeting(const options& chosen)
        : chosen_(chosen), until_(wall_clock() + chosen.meeting_timeout), loop_(chosen.rank) {
        made_.rank = chosen.rank;
        made_.ranks = chosen.size();
        made_.takes_newcomers = chosen.seats != 0;
        made_.alike = equal_options();
        lines_.resize(static_cast<std::size_t>(made_.ranks));
        if (chosen.security != security::open) made_.secret = chosen.key;
        if (chosen.security == security::encrypted && made_.ranks > 1)
            made_.encrypts = std::make_unique<tls_context>(made_.secret.tls_secret());
        made_.own = {.why = handshake::purpose::mail,
                     .job = hash_of(chosen.job),
                     .build = mix64(mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR), RILL_VERSION_PATCH),
                     .ranks = made_.ranks,
                     .rank = chosen.rank,
                     .incarnation = random_number() | 1};
    }

    mesh run() {
        if (made_.ranks == 1) return std::move(made_);
        if (chosen_.comes_late())
            join_late();
        else if (chosen_.rank == 0)
            gather();
        else
            join();
        made_.roster.resize(static_cast<std::size_t>(made_.ranks));
        // Who joins may be on another host, and must not change what all have alike.
        if (made_.takes_newcomers) return std::move(made_);
        for (const roster_entry& each : made_.roster)
            if (each.rank != made_.rank && each.host == entry_of(made_.rank).host) ++made_.neighbours;
        return std::move(made_);
    }

  private:
    using state = handshake::state;
    using refusal = handshake::refusal;

    /// What rank 0 knows of a rank that has proved who it is.
    struct newcomer {
        meeting_reader words;
        std::uint64_t incarnation = 0, attempt = 0;
        bool has_told = false;
    };

    static std::uint64_t hash_of(std::string_view text) {
        std::uint64_t hash = 0;
        for (const char each : text) hash = mix64(hash, static_cast<unsigned char>(each));
        return hash;
    }
    static std::string host_name() {
        char name[roster_entry::most_host + 1] = "";
        ::gethostname(name, sizeof name - 1);
        return name[0] == 0 ? "localhost" : name;
    }
    static std::string name_of(rank_t rank) { return "rank " + std::to_string(rank); }

    std::string within() const { return text_of({" within ", chosen_.meeting_timeout.seconds(), " s"}); }
    [[noreturn]] void fail(const std::string& what) const { throw library_error(chosen_.rank, what); }
    [[noreturn]] static void fail_for_all(failure kind, const std::string& text) {
        throw_error({.context = every_context, .kind = kind, .reason = text});
    }
    std::vector<meeting_word::option> equal_options() const {
        return {{"eager_bytes", chosen_.eager_bytes},
                {"chunk_bytes", chosen_.chunk_bytes},
                {"mailbox_bytes", chosen_.mailbox_bytes},
                {"window_bytes", chosen_.window_bytes},
                {"ranks", static_cast<std::uint64_t>(chosen_.ranks)},
                {"seats", static_cast<std::uint64_t>(chosen_.seats)}};
    }
    roster_entry& entry_of(rank_t rank) { return made_.roster[static_cast<std::size_t>(rank)]; }
    line& line_to(rank_t rank) { return lines_[static_cast<std::size_t>(rank)]; }

    std::string file_path() const { return chosen_.meeting.substr(std::strlen("file:")); }
    std::vector<socket_address> addresses() const {
        if (is_file(chosen_.meeting)) return own_addresses(!made_.secret && chosen_.security != security::open);
        std::vector<socket_address> all = resolve_all(chosen_.meeting, chosen_.rank);
        if (made_.secret || chosen_.security == security::open) return all;
        for (const socket_address& each : all)
            if (!each.is_loopback())
                fail("the meeting point " + chosen_.meeting +
                     " is not on the loopback interface, and there is no key: tools/launch --make-key makes one");
        return all;
    }
    /// Waits until something happens, at most until the deadline, and goes on with it.
    template <class Told>
    void take_turn(Told&& told) {
        mail::optional_mutex nobody;
        loop_.wait(nobody, std::min(contacts_->due(), look_at_), until_, [&](std::uint64_t name, std::uint32_t) {
            if (!contacts_->serve(name, *this)) told(contacts::peer_of(name));
        });
        contacts_->keep_time(wall_clock(), *this);
    }
    void make_contacts(handshake::purpose why = handshake::purpose::meeting) {
        handshake::identity own = made_.own;
        own.why = why;
        contacts_.emplace(loop_, own, made_.security(), contacts::pace{.after_answer = milliseconds(20)});
    }

    /// Why a rank that dialled does not fit to the one that it dialled.
    static std::string mismatch_of(refusal why, const handshake::identity& dialled, const handshake::identity& by) {
        const std::string who = name_of(by.rank), other = name_of(dialled.rank);
        switch (why) {
            case refusal::version: return who + " has another version of rill";
            case refusal::job: return who + " belongs to another job";
            case refusal::build: return who + " has another version of rill";
            case refusal::ranks: return text_of({who, " expects ", by.ranks, " ranks, ", other, " ", dialled.ranks});
            case refusal::rank:
                return by.rank == dialled.rank ? "two processes say that they are " + who : who + " is none of the job";
            case refusal::purpose: return "the ranks have met already";
            case refusal::key: return who + " has another key than " + other;
            default: return text_of({other, " refuses ", who, ", reason ", static_cast<int>(why)});
        }
    }
    /// How this rank and rank 0 secure connections differently.
    static const char* difference_of(handshake::mode own, handshake::mode first) {
        using mode = handshake::mode;
        if (own == mode::bare) return " has no key, rank 0 has one";
        if (first == mode::bare) return " has a key, rank 0 has none";
        return own == mode::encrypted ? " encrypts, rank 0 does not" : " does not encrypt, rank 0 does";
    }
    static const char* description_of(handshake::mode own, handshake::mode guest) {
        using mode = handshake::mode;
        if (own == mode::bare) return "with a key";
        if (guest == mode::bare) return "without a key";
        return guest == mode::encrypted ? "that encrypts" : "that does not encrypt";
    }
    /// Whether no later dial can succeed. Else somebody else than rank 0 has answered, or rank 0 in a meeting that is
    /// over, or it has not noticed yet that an earlier connection is lost.
    static bool is_final(refusal why, const handshake::identity& peer) {
        switch (why) {
            case refusal::version:
            case refusal::security:
            case refusal::job:
            case refusal::build:
            case refusal::ranks:
            case refusal::key: return true;
            case refusal::rank: return peer.rank == 0;
            default: return false;
        }
    }
    std::string refusal_of(const handshake& by) const {
        if (by.why() == refusal::foreign) return "what answers is no rank of a job";
        if (by.why() == refusal::rank && by.peer().rank != 0) return "what answers is " + name_of(by.peer().rank);
        if (by.why() == refusal::security) return name_of(made_.rank) + difference_of(by.own_mode(), by.peer_mode());
        handshake::identity dialled = by.peer();
        dialled.rank = 0;  // not yet read where the protocols differ
        return mismatch_of(by.why(), dialled, made_.own);
    }

    // Rank 0.

    void gather() {
        std::vector<socket> here;
        for (const socket_address& each : addresses())
            if (socket made = listen_at(each, SOMAXCONN)) here.push_back(std::move(made));
        if (here.empty()) fail("cannot listen at " + chosen_.meeting + ": " + system_text());
        listen_at_cards();
        if (is_file(chosen_.meeting)) {
            meeting_file told{.job = made_.own.job, .incarnation = made_.own.incarnation};
            for (const socket& each : here) told.addresses.push_back(socket_address::local_of(each).text());
            told.write(file_path(), chosen_.rank);
        }
        made_.roster.resize(static_cast<std::size_t>(made_.ranks));
        entry_of(0) = own_entry();
        if (made_.listeners.empty()) entry_of(0).addresses = addresses_of(here, 0);
        for (rank_t peer = 0; peer < made_.ranks; ++peer) come_.push_back(expected(peer));
        make_contacts();
        contacts_->listen(std::move(here));
        while (missing() != 0) {
            if (wall_clock() >= until_) refuse_all(failure::timeout, who_is_missing());
            take_turn([&](rank_t peer) { listen_to(peer); });
        }
        if (made_.listeners.empty())
            made_.listeners.push_back(contacts_->stop_listening());
        else  // the first card goes on at the meeting point too
            for (socket& each : contacts_->stop_listening()) made_.listeners.front().push_back(std::move(each));
        made_.roster.resize(static_cast<std::size_t>(chosen_.ranks));
        if (is_file(chosen_.meeting) && !made_.takes_newcomers &&
            meeting_file::read(file_path()).incarnation == made_.own.incarnation)
            ::unlink(file_path().c_str());
        const std::vector<std::byte> roster = meeting_word::of_roster(made_.roster);
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
            send_all(peer, roster);  // who has ended since is missed later
    }

    newcomer expected(rank_t peer) const { return {.words = meeting_reader(made_.ranks, 0, peer)}; }
    std::size_t missing() const {
        const auto end = come_.begin() + chosen_.ranks;
        return static_cast<std::size_t>(
            std::count_if(come_.begin() + 1, end, [](const newcomer& each) { return !each.has_told; }));
    }
    std::string who_is_missing() const {
        std::string who, more;
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
            if (!come_[static_cast<std::size_t>(peer)].has_told) {
                more = who.empty() ? "" : "s";
                who += (who.empty() ? "" : ", ") + std::to_string(peer);
            }
        return "rank" + more + " " + who + (more.empty() ? " has" : " have") + " not come to " + chosen_.meeting +
               within() + (stranger_.empty() ? "" : ": " + stranger_);
    }

    void decide(pending_connection& guest) override {
        const handshake::identity& peer = guest.said().peer();
        const newcomer& its = come_[static_cast<std::size_t>(peer.rank)];
        // A dial that was given up for another one may prove itself late.
        its.incarnation == peer.incarnation&& peer.attempt <= its.attempt ? guest.refuse(refusal::stale)
                                                                          : guest.accept(0);
    }
    void came(pending_connection&& guest, bool is_told) override {
        const handshake::identity peer = guest.said().peer();
        newcomer& its = come_[static_cast<std::size_t>(peer.rank)];
        detail::line& line = line_to(peer.rank);
        if (!is_told) return;
        if (line && its.incarnation != peer.incarnation) {
            const std::string text = "two processes say that they are " + name_of(peer.rank);
            tell_refusal(guest.take(), failure::mismatch, text);
            refuse_all(failure::mismatch, text);
        }
        its = expected(peer.rank);
        its.incarnation = peer.incarnation;
        its.attempt = peer.attempt;
        line = guest.take();
        loop_.change(line.on(), contacts::name_of_peer(peer.rank), false);
    }
    void turned_away(const pending_connection& guest) override {
        const handshake::identity& peer = guest.said().peer();
        const refusal why = guest.said().why();
        if (why == refusal::key)
            stranger_ = peer.rank == no_rank ? "a process with another key came" : mismatch_of(why, made_.own, peer);
        if (why == refusal::security)
            stranger_ =
                std::string("a process came ") + description_of(guest.said().own_mode(), guest.said().peer_mode());
        if (why == refusal::version) stranger_ = "a process with another version of rill came";
        // One that exchanges mail was in a job that has been here before; a late dial is of a rank that has come.
        if (guest.said().is_proven() && peer.why == handshake::purpose::meeting && why != refusal::stale)
            refuse_all(failure::mismatch, mismatch_of(why, made_.own, peer));
    }
    /// Reads what a rank tells that has proved who it is.
    void listen_to(rank_t peer) {
        newcomer& its = come_[static_cast<std::size_t>(peer)];
        try {
            if (its.has_told || !read(its.words, line_to(peer))) {  // it is lost, and may come again
                line_to(peer) = detail::line();
                its = expected(peer);
                return;
            }
            if (!its.words.is_whole()) return;
            const char* differs = nullptr;
            entry_of(peer) = its.words.entry(equal_options(), its.incarnation, differs);
            scope_link_local(entry_of(peer), socket_address::local_of(line_to(peer).on()).scope(),
                             entry_of(0).addresses);
            if (differs != nullptr) refuse_all(failure::mismatch, name_of(peer) + " has another value of " + differs);
        } catch (const protocol_error& caught) {
            tell_all(failure::protocol, caught.notice().reason);
            throw;
        }
        its.has_told = true;
    }

    static void tell_refusal(const line& to, failure kind, const std::string& text) {
        to.write_last(meeting_word::of_refusal(kind, text));
    }
    void tell_all(failure kind, const std::string& text) const {
        for (const line& each : lines_)
            if (each) tell_refusal(each, kind, text);
    }
    [[noreturn]] void refuse_all(failure kind, const std::string& text) const {
        tell_all(kind, text);
        fail_for_all(kind, text);
    }

    // The others.

    void join() {
        make_contacts();
        if (!is_file(chosen_.meeting)) contacts_->dial(0, addresses(), 0, wall_clock(), *this);
        while (!line_to(0)) {
            if (wall_clock() >= until_) throw_absent();
            if (is_file(chosen_.meeting)) dial_by_file();
            take_turn([](rank_t) {});
        }
        listen_at_cards();
        if (made_.listeners.empty()) {
            socket_address here = socket_address::local_of(line_to(0).on());
            here.set_port(0);
            made_.listeners.emplace_back().push_back(listen_at(here, SOMAXCONN));
            if (!made_.listeners.front().front()) fail("cannot listen: " + system_text());
        }
        const roster_entry own = own_entry();
        if (!send_all(0, meeting_word::of_entry(equal_options(), own))) fail_for_loss();
        receive_roster();
        for (roster_entry& each : made_.roster)
            scope_link_local(each, socket_address::peer_of(line_to(0).on()).scope(), own.addresses);
        // The addresses of rank 0 are those by which this rank has reached it, unless interfaces are chosen.
        if (chosen_.interfaces.empty())
            entry_of(0).addresses = {roster_address_of(socket_address::peer_of(line_to(0).on()))};
    }
    /// Listens at all addresses of the chosen interfaces.
    void listen_at_cards() {
        for (const std::string& card : parts_of(chosen_.interfaces)) {
            std::vector<socket>& here = made_.listeners.emplace_back();
            for (const socket_address& each : card_addresses(card, chosen_.rank)) {
                if (!each.is_loopback() && !made_.secret && chosen_.security != security::open)
                    fail("the interface " + card +
                         " is not the loopback interface, and there is no key: tools/launch --make-key makes one");
                if (socket made = listen_at(each, SOMAXCONN)) here.push_back(std::move(made));
            }
            if (here.empty()) fail("cannot listen at the interface " + card + ": " + system_text());
        }
        if (made_.listeners.size() > roster_entry::most_cards)
            fail(text_of({"interfaces names more than ", roster_entry::most_cards, " network interfaces"}));
    }
    /// Dials rank 0 where the file says, and anew where it has come to say something else: it may be of an earlier job.
    void dial_by_file(rank_t as = 0) {
        constexpr duration between_looks = milliseconds(50);
        const time_point now = wall_clock();
        if (now < look_at_.at && !look_at_.is_never()) return;
        look_at_ = now + between_looks;
        const meeting_file told = meeting_file::read(file_path());
        if (told.addresses.empty() || told.job != made_.own.job) {
            trouble_ = told.addresses.empty() ? "there is no meeting file" : "the meeting file is of another job";
            return contacts_->stop(as);
        }
        if (contacts_->dials(as) && told.incarnation == dialled_) return;
        std::vector<socket_address> all;
        for (const std::string& each : told.addresses)
            for (const socket_address& one : resolve(each, chosen_.rank)) all.push_back(one);
        contacts_->stop(as);
        dialled_ = told.incarnation;
        contacts_->dial(as, all, dialled_, now, *this);
    }
    std::uint64_t begin(rank_t) override { return 0; }
    void dialled(rank_t peer, pending_connection&& made) override {
        if (chosen_.comes_late()) return ask_for_seat(std::move(made));
        line_to(peer) = made.take();
    }
    void refused(rank_t peer, const handshake& by) override {
        if (chosen_.comes_late() && !is_refused_for_good(peer, by)) return;
        trouble_ = refusal_of(by);
        if (is_final(by.why(), by.peer())) fail_for_all(failure::mismatch, trouble_);
    }
    void lost(rank_t, int error) override {
        trouble_ = error == 0 ? "the connection was closed" : std::strerror(error);
    }
    [[noreturn]] void throw_absent() const {
        std::string text =
            (chosen_.comes_late() ? "no rank answers at " : "rank 0 has not come to ") + chosen_.meeting + within();
        if (!trouble_.empty()) text += ": " + name_of(chosen_.rank) + " cannot connect: " + trouble_;
        const rank_t culprit = chosen_.comes_late() ? no_rank : 0;
        throw timeout(abort_notice{.kind = failure::timeout, .culprit = culprit, .reason = std::move(text)});
    }

    // A rank that joins.

    void join_late() {
        const rank_t any = chosen_.rank;  // for the contacts
        listen_at_cards();
        make_contacts(handshake::purpose::join);
        made_.roster.resize(static_cast<std::size_t>(made_.ranks));
        for (rank_t member = 0; member < made_.ranks; ++member) come_.push_back(of_member(member));
        while (!has_joined()) {
            if (wall_clock() >= until_) throw_absent();
            if (knows_nobody()) is_file(chosen_.meeting) ? dial_by_file(any) : dial_points();
            take_turn([&](rank_t member) { hear_member(member); });
        }
        entry_of(chosen_.rank) = own_entry();
    }
    newcomer of_member(rank_t member) const {
        constexpr bool is_host = false;
        return {.words = meeting_reader(made_.ranks, chosen_.rank, member, is_host)};
    }
    newcomer& member_at(rank_t member) { return come_[static_cast<std::size_t>(member)]; }
    void dial_points() {
        if (!contacts_->dials(chosen_.rank)) contacts_->dial(chosen_.rank, addresses(), 0, wall_clock(), *this);
    }
    /// Whether no member has told this rank of others, or all that it knows have ended.
    bool knows_nobody() const {
        return std::none_of(made_.roster.begin(), made_.roster.end(),
                            [](const roster_entry& each) { return each.incarnation != 0; });
    }
    bool has_joined() const {
        if (knows_nobody()) return false;
        for (const roster_entry& each : made_.roster)
            if (each.incarnation != 0 && !come_[static_cast<std::size_t>(each.rank)].has_told) return false;
        return true;
    }
    void ask_for_seat(pending_connection&& made) {
        const handshake::identity member = made.said().peer();
        line& to = line_to(member.rank);
        if (to || member_at(member.rank).has_told) return;
        to = made.take();
        loop_.change(to.on(), contacts::name_of_peer(member.rank), false);
        if (made_.listeners.empty()) {
            socket_address here = socket_address::local_of(to.on());
            here.set_port(0);
            socket listener = listen_at(here, SOMAXCONN);
            if (!listener) fail("cannot listen: " + system_text());
            made_.listeners.emplace_back().push_back(std::move(listener));
        }
        member_at(member.rank) = of_member(member.rank);
        member_at(member.rank).incarnation = member.incarnation;
        // Where the connection is lost, `hear_member` finds it.
        send_all(member.rank, meeting_word::of_entry(equal_options(), own_entry()));
    }
    void hear_member(rank_t member) {
        newcomer& its = member_at(member);
        if (!line_to(member)) return;
        if (!read(its.words, line_to(member))) {
            line_to(member) = detail::line();
            return dial_member(member);
        }
        if (!its.words.is_whole()) return;
        if (its.words.kind() == meeting_word::kind::refusal) {
            const auto [kind, text] = its.words.refusal();
            fail_for_all(kind, text);
        }
        its.has_told = true;
        contacts_->stop(chosen_.rank);
        const std::uint32_t scope = socket_address::peer_of(line_to(member).on()).scope();
        const std::vector<roster_address> here = own_entry().addresses;
        for (roster_entry& each : its.words.roster_of_some()) {
            roster_entry& known = entry_of(each.rank);
            if (each.rank == chosen_.rank || known.incarnation != 0) continue;
            scope_link_local(each, scope, here);
            known = std::move(each);
            if (!member_at(known.rank).has_told && !line_to(known.rank)) dial_member(known.rank);
        }
        roster_entry& own = entry_of(member);
        if (own.incarnation != its.incarnation) own = {};  // it has gone, and begun anew
        // Its addresses are those by which this rank has reached it, unless interfaces are chosen.
        if (own.incarnation != 0 && chosen_.interfaces.empty())
            own.addresses = {roster_address_of(socket_address::peer_of(line_to(member).on()))};
        line_to(member) = detail::line();
    }
    void dial_member(rank_t member) {
        const roster_entry& whom = entry_of(member);
        std::vector<socket_address> all;
        for (const roster_address& each : whom.addresses)  // only the first network card takes processes that join
            if (each.card == 0) all.push_back(socket_address_of(each));
        if (!all.empty()) contacts_->dial(member, all, whom.incarnation, wall_clock(), *this);
    }
    /// A member of the roster that does not listen any more has ended.
    void unreachable(rank_t member, int rounds) override {
        if (!chosen_.comes_late() || member == chosen_.rank || rounds < 2) return;
        forget(member);
    }
    void forget(rank_t member) {
        contacts_->stop(member);
        entry_of(member) = {};
        member_at(member) = of_member(member);
        line_to(member) = detail::line();
    }
    /// Whether a later dial will be refused, too. The process that sat on the seat before may have ended just now; then
    /// the others need a while to notice it.
    bool is_refused_for_good(rank_t member, const handshake& by) {
        const bool is_seated =
            by.why() == refusal::seated || (by.why() == refusal::rank && by.peer().rank == chosen_.rank);
        if (is_seated) {
            trouble_ = text_of({"a process that has not ended is ", name_of(chosen_.rank), " of this job"});
            if (gives_up_.is_never()) gives_up_ = wall_clock() + chosen_.patience + seconds(1);
            if (wall_clock() >= gives_up_.at) fail_for_all(failure::mismatch, trouble_);
            return false;
        }
        if (by.why() == refusal::purpose) {
            trouble_ = "the ranks have not met yet, or options::seats is 0 there";
            return false;
        }
        if (by.why() == refusal::incarnation && member != chosen_.rank) {  // it has begun anew
            forget(member);
            return false;
        }
        return true;
    }

    static std::vector<roster_address> addresses_of(const std::vector<socket>& listeners, std::size_t card) {
        constexpr std::size_t most = roster_entry::most_addresses;
        std::vector<roster_address> made;
        for (const socket& each : listeners) {
            if (made.size() == most) break;
            made.push_back(roster_address_of(socket_address::local_of(each)));
            made.back().card = static_cast<std::uint8_t>(card);
        }
        return made;
    }
    roster_entry own_entry() const {
        roster_entry made{
            .rank = chosen_.rank, .incarnation = made_.own.incarnation, .host = host_name(), .addresses = {}};
        const std::size_t cards = made_.listeners.size(), most = roster_entry::most_addresses;
        for (std::size_t card = 0; card < cards; ++card) {
            auto some = addresses_of(made_.listeners[card], card);
            some.resize(std::min(some.size(), cards == 1 ? most : most / roster_entry::most_cards));
            made.addresses.insert(made.addresses.end(), some.begin(), some.end());
        }
        return made;
    }

    [[noreturn]] void fail_for_loss() const { fail("the connection to rank 0 is lost while the ranks meet"); }
    void receive_roster() {
        meeting_reader words(chosen_.ranks, chosen_.rank, 0);
        // Rank 0 waits until the same deadline, by its own start; then it says who is missing.
        const time_point last = until_ + chosen_.meeting_timeout;
        while (!words.is_whole()) {
            if (!read(words, line_to(0))) fail_for_loss();
            if (words.is_whole()) break;
            if (wall_clock() >= last) fail("rank 0 has not answered" + within());
            pollfd one{.fd = line_to(0).on().get(), .events = POLLIN, .revents = 0};
            wait_for({&one, 1}, last);
        }
        if (words.kind() == meeting_word::kind::refusal) {
            const auto [kind, text] = words.refusal();
            fail_for_all(kind, text);
        }
        made_.roster = words.roster();
    }

    /// Reads what the socket has of a word; false where the connection is lost.
    static bool read(meeting_reader& words, const line& from) {
        for (byte_span room = words.room(); !room.empty(); room = words.room()) {
            const ssize_t got = from.read(room);
            if (got < 0 && errno == EAGAIN) return true;
            if (got <= 0) return false;
            words.arrived(static_cast<std::size_t>(got));
        }
        return true;
    }
    /// False where the connection is lost, or takes too long.
    bool send_all(rank_t peer, byte_view bytes) {
        const line& to = line_to(peer);
        while (!bytes.empty() || to.owes()) {
            const ssize_t sent = to.write(bytes);
            if (sent >= 0) {
                bytes = bytes.subspan(static_cast<std::size_t>(sent));
                continue;
            }
            if (errno != EAGAIN || wall_clock() >= until_) return false;
            pollfd one{.fd = to.on().get(), .events = POLLOUT, .revents = 0};
            wait_for({&one, 1}, until_);
        }
        return true;
    }

    const options& chosen_;
    time_point until_;
    mesh made_;
    loop loop_;
    std::optional<contacts> contacts_;
    std::vector<line> lines_;  ///< by rank; of rank 0 to all, of the others to rank 0
    std::vector<newcomer> come_;
    deadline look_at_ = deadline::never;   ///< into the meeting file
    std::uint64_t dialled_ = 0;            ///< the incarnation of rank 0 that the file tells
    deadline gives_up_ = deadline::never;  ///< a rank that joins, where its seat is taken
    std::string trouble_;                  ///< why the last dial did not reach rank 0
    std::string stranger_;                 ///< what somebody lacked who could not prove that it belongs to the job
};

}}}  // namespace rill::RILL_ABI::tcp::detail
