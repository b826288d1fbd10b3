#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_table.hpp>
#include <rill/transport/detail/simulated_agenda.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The planned end of a rank, or its restart.
struct turning_point : appointment {
    turning_point() : appointment(what::fault) {}
    rank_t rank = no_rank;
};

/// What a rank that monitors has been told of another.
struct known_peer {
    int life = 0;  ///< the latest one; 0: its seat was always free
    bool has_ended = false;
    bool is_silent = false;
};

/// What another rank has asked this one and waits to hear.
struct question {
    rank_t by = no_rank;
    std::uint64_t context = 0;
    std::uint64_t number = 0;
};

/// The state of one rank.
struct rank_state {
    wait_list receiving;
    wait_list posting;                      ///< activities that wait for room in this rank's mailbox
    wait_list inquiring;                    ///< activities that ask this rank
    std::vector<question> asked;            ///< where control travels
    parcel_list<parcel::of_receiver> mail;  ///< under way or arrived
    parcel_list<parcel::of_source> held;    ///< messages that wait to be overtaken, and those behind them
    std::size_t handed_over = 0;            ///< bytes in `mail` that were handed over
    traffic counted{};
    rill::detail::call_table calls{};
    strand* main = nullptr;
    std::vector<channel> monitored;
    std::vector<known_peer> known;               ///< by rank, once it monitors
    std::vector<std::pair<rank_t, int>> fenced;  ///< lives
    bool is_alive = false;
    bool has_ended = false;     ///< its body has ended, or it was killed
    bool has_departed = false;  ///< its body has returned or thrown
    bool begins_anew = false;   ///< as soon as its last life is over
    int lives = 0;
    std::uint64_t posted = 0;  ///< in this life
    std::uint64_t computations = 0;
    duration computing{};
    time_point ended{};
    std::unique_ptr<turning_point> next_fault{};
    std::optional<abort_notice> failure{};  ///< what its body has thrown
};

}}}  // namespace rill::RILL_ABI::simulated::detail
