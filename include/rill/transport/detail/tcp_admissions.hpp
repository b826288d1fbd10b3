#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_pending.hpp>

#include <sys/types.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The processes that have proved that they belong to the job, want to join it, and have not yet told their entry. Each
/// has a limited time.
class admissions {
  public:
    struct newcomer {
        line on;
        meeting_reader words;
        rank_t rank;
        std::uint64_t incarnation;
        time_point since;
    };

    admissions(loop& in, rank_t ranks, rank_t self) : loop_(in), ranks_(ranks), self_(self) {}

    void begin(pending_connection&& guest) {
        constexpr bool is_host = true;
        const handshake::identity who = guest.said().peer();
        all_.push_back({.on = guest.take(),
                        .words = meeting_reader(ranks_, self_, who.rank, is_host),
                        .rank = who.rank,
                        .incarnation = who.incarnation,
                        .since = wall_clock()});
        loop_.change(all_.back().on.on(), contacts::name_of_newcomer(all_.back().on.on()), false);
    }
    /// Goes on with what the loop has named. Calls `told(newcomer)` where its entry is whole; then its time is over.
    template <class Told>
    void serve(int descriptor, Told&& told) {
        const auto found = std::find_if(all_.begin(), all_.end(),
                                        [=](const newcomer& each) { return each.on.on().get() == descriptor; });
        if (found == all_.end()) return;
        try {
            if (!has_all(*found)) return;
            told(*found);
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

    loop& loop_;
    rank_t ranks_, self_;
    std::list<newcomer> all_{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
