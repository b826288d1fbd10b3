#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_arrival.hpp>
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

#include <poll.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A rank other than 0 while the ranks meet: it dials the meeting point, tells rank 0 where it listens, and is told
/// where all do.
class meeting_guest final : public arrival {
  public:
    explicit meeting_guest(const options& chosen) : arrival(chosen, handshake::purpose::meeting) {}

    mesh run() {
        if (!is_file(chosen_.meeting)) contacts_->dial(0, addresses(), 0, wall_clock(), *this);
        while (!host_) {
            if (wall_clock() >= until_) fail_for_absence(0, "rank 0 has not come to ");
            if (is_file(chosen_.meeting)) dial_by_file(0, true);
            take_turn(deadline::never, [](std::uint64_t) {});
        }
        listen_at_cards();
        listen_beside(host_);
        if (!send_own_entry(host_)) fail_for_loss();
        made_.roster = told_roster();
        for (roster_entry& each : made_.roster)
            scope_link_local(each, socket_address::peer_of(host_.on()).scope(), own_entry().addresses);
        reach_as_before(made_.at(0), host_);
        return std::move(made_);
    }

  private:
    void dialled(rank_t, pending_connection&& made) override { host_ = made.take(); }
    void refused(rank_t, const handshake& by) override {
        trouble_ = refusal_text(by, made_.own);
        if (is_final(by) && !is_list(chosen_.meeting)) fail_as_odd();
    }
    std::vector<roster_entry> told_roster() {
        meeting_reader words(chosen_.ranks, chosen_.rank, 0);
        // Rank 0 waits until the same deadline, by its own start; then it says who is missing.
        const time_point last = until_ + chosen_.meeting_timeout;
        while (!words.is_whole()) {
            if (!read(words, host_)) fail_for_loss();
            if (words.is_whole()) break;
            if (wall_clock() >= last) fail_for_rank_0(failure::timeout, "rank 0 has not answered" + within());
            pollfd one{.fd = host_.on().get(), .events = POLLIN, .revents = 0};
            wait_for({&one, 1}, last);
        }
        if (words.kind() == meeting_word::kind::refusal) throw_error(words.refusal());
        return words.roster();
    }
    [[noreturn]] void fail_for_loss() const {
        fail_for_rank_0(failure::exception, "the connection to rank 0 is lost while the ranks meet");
    }
    [[noreturn]] void fail_for_rank_0(failure kind, const std::string& what) const {
        abort_notice notice = notice_of(kind, 0, text_of({"rank ", chosen_.rank, ": ", what}));
        notice.other = chosen_.rank;
        throw_error(notice);
    }

    line host_{};  ///< to rank 0
};

}}}  // namespace rill::RILL_ABI::tcp::detail
