#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting_point.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_mesh.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What a process does on its way into a job, whether it meets the other ranks or joins them: it listens where the
/// options say, tells who it is, and makes connections until a deadline, which no arrival prolongs. Who dials or is
/// dialled and does not prove that it has the job's key changes nothing but the text of an error.
class arrival : public contacts::owner {
  protected:
    using refusal = handshake::refusal;

    arrival(const options& chosen, handshake::purpose why)
        : chosen_(chosen), until_(wall_clock() + chosen.meeting_timeout), made_(mesh_of(chosen)), loop_(chosen.rank) {
        made_.roster.resize(static_cast<std::size_t>(made_.ranks));
        handshake::identity own = made_.own;
        own.why = why;
        contacts_.emplace(loop_, own, made_.security(), contacts::pace{.after_answer = milliseconds(20)});
    }
    ~arrival() = default;

    // For those that dial nobody, or are dialled by nobody.

    std::uint64_t begin(rank_t) override { return 0; }
    void dialled(rank_t, pending_connection&&) override {}
    void refused(rank_t, const handshake&) override {}
    void decide(pending_connection& guest) override { guest.refuse(refusal::purpose); }
    void came(pending_connection&&, bool) override {}
    void lost(rank_t, int error) override {
        trouble_ = error == 0 ? "the connection was closed" : std::strerror(error);
    }

    std::string within() const { return text_of({" within ", chosen_.meeting_timeout.seconds(), " s"}); }
    [[noreturn]] void fail(const std::string& what) const { throw library_error(chosen_.rank, what); }
    /// What ends the meeting. The culprit may be none of the job.
    abort_notice notice_of(failure kind, rank_t culprit, std::string text) const {
        const bool is_known = culprit >= 0 && culprit < made_.ranks;
        return {
            .context = every_context, .kind = kind, .culprit = is_known ? culprit : no_rank, .reason = std::move(text)};
    }
    /// This rank does not belong to the others.
    [[noreturn]] void fail_as_odd() const { throw_error(notice_of(failure::mismatch, chosen_.rank, trouble_)); }
    [[noreturn]] void fail_for_absence(rank_t culprit, const std::string& who) const {
        std::string text = text_of({who, chosen_.meeting, within()});
        if (!trouble_.empty()) text += text_of({": rank ", chosen_.rank, " cannot connect: ", trouble_});
        throw timeout(abort_notice{.kind = failure::timeout, .culprit = culprit, .reason = std::move(text)});
    }

    /// Without a key, nobody but this host may reach what this rank listens at.
    bool is_local() const { return !made_.secret && chosen_.security != security::open; }
    /// Of the meeting point, which is no file.
    const std::vector<socket_address>& addresses() {
        if (made_.points.empty()) made_.points = resolve_all(chosen_.meeting, chosen_.rank);
        for (const socket_address& each : made_.points)
            if (is_local() && !each.is_loopback())
                fail("the meeting point " + chosen_.meeting +
                     " is not on the loopback interface, and there is no key: tools/launch --make-key makes one");
        return made_.points;
    }
    /// Waits until something happens, at most until `timer` or the deadline, and goes on with it: `told(name)` where it
    /// happened to a connection that has been taken.
    template <class Told>
    void take_turn(deadline timer, Told&& told) {
        mail::optional_mutex nobody;
        timer = std::min({timer, contacts_->due(), look_at_});
        loop_.wait(nobody, timer, until_, [&](std::uint64_t name, std::uint32_t) {
            if (!contacts_->serve(name, *this)) told(name);
        });
        contacts_->keep_time(wall_clock(), *this);
    }
    /// Dials where the meeting file says, and anew where it has come to say something else: it may be of an earlier
    /// job. `is_of_host`: whether only the rank that has written it is to answer.
    void dial_by_file(rank_t as, bool is_of_host) {
        constexpr duration between_looks = milliseconds(50);
        const time_point now = wall_clock();
        if (now < look_at_.at && !look_at_.is_never()) return;
        look_at_ = now + between_looks;
        meeting_file told = meeting_file::read(path_of(chosen_.meeting));
        if (told.addresses.empty() || told.job != made_.own.job) {
            trouble_ = told.addresses.empty() ? "there is no meeting file" : "the meeting file is of another job";
            return contacts_->stop(as);
        }
        if (contacts_->dials(as) && told == dialled_) return;
        std::vector<socket_address> all;
        for (const std::string& each : told.addresses)
            for (const socket_address& one : resolve(each, chosen_.rank))
                if (!is_local() || one.is_loopback()) all.push_back(one);
        contacts_->stop(as);
        dialled_ = std::move(told);
        if (all.empty()) {
            trouble_ =
                "the meeting file names no loopback address, and there is no key: tools/launch --make-key makes one";
            return;
        }
        contacts_->dial(as, all, is_of_host ? dialled_.incarnation : 0, now, *this);
    }
    /// Writes into the meeting file of a job with seats where all listen that this rank knows: who joins later may ask
    /// any of them.
    void tell_by_file() const {
        if (!is_file(chosen_.meeting) || !made_.takes_newcomers) return;
        meeting_file told{.job = made_.own.job, .incarnation = made_.own.incarnation};
        for (const roster_entry& each : made_.roster)
            for (const roster_address& at : each.addresses)
                if (const socket_address known = socket_address_of(at);
                    !known.is_link_local() && told.addresses.size() < meeting_file::most_addresses)
                    told.addresses.push_back(known.text());
        if (!told.addresses.empty()) told.write(path_of(chosen_.meeting), chosen_.rank);
    }

    /// Listens at all addresses of the chosen interfaces.
    void listen_at_cards() {
        for (const std::string& card : parts_of(chosen_.interfaces)) {
            std::vector<socket>& here = made_.listeners.emplace_back();
            for (const socket_address& each : card_addresses(card, chosen_.rank)) {
                if (is_local() && !each.is_loopback())
                    fail("the interface " + card +
                         " is not the loopback interface, and there is no key: tools/launch --make-key makes one");
                if (socket made = listen_at(each, SOMAXCONN)) here.push_back(std::move(made));
            }
            if (here.empty()) fail("cannot listen at the interface " + card + ": " + system_text());
        }
        if (made_.listeners.size() > roster_entry::most_cards)
            fail(text_of({"interfaces names more than ", roster_entry::most_cards, " network interfaces"}));
    }
    /// Where no interfaces are chosen, listens at the address by which this rank has reached another one.
    void listen_beside(const line& to) {
        if (!made_.listeners.empty()) return;
        socket_address here = socket_address::local_of(to.on());
        here.set_port(0);
        socket made = listen_at(here, SOMAXCONN);
        if (!made) fail("cannot listen: " + system_text());
        made_.listeners.emplace_back().push_back(std::move(made));
    }
    static std::vector<roster_address> addresses_of(const std::vector<socket>& listeners, std::size_t card) {
        std::vector<roster_address> made;
        for (const socket& each : listeners) {
            if (made.size() == roster_entry::most_addresses) break;
            made.push_back(roster_address_of(socket_address::local_of(each)));
            made.back().card = static_cast<std::uint8_t>(card);
        }
        return made;
    }
    roster_entry own_entry() const {
        char host[roster_entry::most_host + 1] = "";
        ::gethostname(host, sizeof host - 1);
        std::replace_if(
            host, host + std::strlen(host), [](char each) { return !roster_entry::is_plain(each); }, '?');
        roster_entry made{.rank = chosen_.rank,
                          .incarnation = made_.own.incarnation,
                          .host = host[0] == 0 ? "localhost" : host,
                          .addresses = {}};
        const std::size_t cards = made_.listeners.size(), most = roster_entry::most_addresses;
        for (std::size_t card = 0; card < cards; ++card) {
            auto some = addresses_of(made_.listeners[card], card);
            some.resize(std::min(some.size(), cards == 1 ? most : most / roster_entry::most_cards));
            made.addresses.insert(made.addresses.end(), some.begin(), some.end());
        }
        return made;
    }
    /// Where interfaces are not chosen, a peer's address is the one by which this rank has reached it.
    void reach_as_before(roster_entry& whom, const line& by) const {
        if (chosen_.interfaces.empty()) whom.addresses = {roster_address_of(socket_address::peer_of(by.on()))};
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
    bool send_all(const line& to, byte_view bytes) const {
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
    bool send_own_entry(const line& to) const { return send_all(to, meeting_word::of_entry(made_.alike, own_entry())); }

    const options& chosen_;
    time_point until_;
    mesh made_;
    loop loop_;
    std::optional<contacts> contacts_;
    std::string trouble_{};  ///< why the last dial did not reach anybody

  private:
    deadline look_at_ = deadline::never;  ///< into the meeting file
    meeting_file dialled_{};              ///< what the file said last
};

}}}  // namespace rill::RILL_ABI::tcp::detail
