#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_mesh.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/types.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Answers the processes that want to join the job, once they have proved that they belong to it: each tells its entry,
/// within a limited time, and is told whom else it has to ask for its seat.
class admissions {
  public:
    /// Knows who sits on the seats.
    class owner {
      public:
        /// Why this start of a rank may not have its seat now; `none` where it may, or has it.
        virtual handshake::refusal fault_of_newcomer(rank_t rank, std::uint64_t incarnation) = 0;
        /// A process takes its seat, or has it and asks once more.
        virtual void seat(roster_entry&& newcomer) = 0;
        /// All processes that sit on a seat.
        virtual std::vector<roster_entry> seated() = 0;

      protected:
        ~owner() = default;
    };

    /// The loop and the mesh must outlive it.
    admissions(loop& in, const mesh& of) : loop_(in), mesh_(of) {}

    static void decide(pending_connection& guest, owner& by) {
        const handshake::identity& who = guest.said().peer();
        const handshake::refusal fault = by.fault_of_newcomer(who.rank, who.incarnation);
        fault == handshake::refusal::none ? guest.accept(0) : guest.refuse(fault);
    }
    void begin(pending_connection&& guest) {
        constexpr bool is_host = true;
        const handshake::identity who = guest.said().peer();
        all_.push_back({.on = guest.take(),
                        .words = meeting_reader(mesh_.ranks, mesh_.rank, who.rank, is_host),
                        .rank = who.rank,
                        .incarnation = who.incarnation,
                        .since = wall_clock()});
        loop_.change(all_.back().on.on(), contacts::name_of_newcomer(all_.back().on.on()), false);
    }
    /// Goes on with what the loop has named.
    void serve(std::uint64_t name, owner& by) {
        const int descriptor = contacts::descriptor_of(name);
        const auto found = std::find_if(all_.begin(), all_.end(),
                                        [=](const newcomer& each) { return each.on.on().get() == descriptor; });
        if (found == all_.end()) return;
        try {
            if (!has_all(*found)) return;
            answer(*found, by);
        } catch (const protocol_error&) {  // what it says makes no sense
        } catch (const lost&) {
        }
        loop_.forget(found->on.on());
        all_.erase(found);
    }
    void drop_late(time_point now) {
        all_.remove_if([&](const newcomer& each) { return each.since + reception::most_time <= now; });
    }

  private:
    struct newcomer {
        line on;
        meeting_reader words;
        rank_t rank;
        std::uint64_t incarnation;
        time_point since;
    };
    struct lost {};

    static bool has_all(newcomer& from) {
        while (!from.words.is_whole()) {
            const ssize_t got = from.on.read(from.words.room());
            if (got < 0 && errno == EAGAIN) return false;
            if (got <= 0) throw lost();
            from.words.arrived(static_cast<std::size_t>(got));
        }
        return true;
    }
    void answer(const newcomer& who, owner& by) const {
        const char* differs = nullptr;
        roster_entry entry = who.words.entry(mesh_.alike, who.incarnation, differs);
        if (differs != nullptr)
            return who.on.write_last(
                meeting_word::of_refusal({.kind = failure::mismatch,
                                          .culprit = who.rank,
                                          .reason = text_of({"rank ", who.rank, " has another value of ", differs})}));
        if (by.fault_of_newcomer(who.rank, who.incarnation) != handshake::refusal::none) return;
        scope_link_local(entry, socket_address::local_of(who.on.on()).scope(), mesh_.at(mesh_.rank).addresses);
        by.seat(std::move(entry));
        who.on.write_last(meeting_word::of_roster(by.seated()));
    }

    loop& loop_;
    const mesh& mesh_;
    std::list<newcomer> all_{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
