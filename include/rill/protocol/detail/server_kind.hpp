#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages between the workers and the servers of a parameter server.
struct server_kind {
    // To a server. All but `push` and `give_up` carry the number of a question, 0 to ask for no answer, and as weight
    // how often the worker has pushed.
    static constexpr message_kind pull{"parameter server", 1};
    static constexpr message_kind pull_keys{"parameter server", 2};  ///< with the coordinates that it asks for
    static constexpr message_kind retire{"parameter server", 3};     ///< the worker pushes no more
    static constexpr message_kind end{"parameter server", 4};        ///< and no other worker shall go on
    static constexpr message_kind push{"parameter server", 5};       ///< the worker's next push, with its number
    static constexpr message_kind give_up{"parameter server", 6};    ///< wait no more for the worker of this number

    // To a worker, with the number of its question.
    static constexpr message_kind answer{"parameter server", 7};  ///< what was asked for
    static constexpr message_kind late{"parameter server", 8};    ///< another worker is too far behind, for too long
    static constexpr message_kind over{"parameter server", 9};    ///< retire: a worker has ended the run
    static constexpr message_kind final{"parameter server", 10};  ///< the run is over; the server's whole part follows

    /// Never sent: what a transport tells of a rank that has ended.
    static constexpr message_kind ended{"parameter server", 11};
    static constexpr message_kind of(peer_change change) {
        return change == peer_change::ended ? ended : message_kind{};
    }

    static constexpr bool is_to_server(message_kind kind) {
        return kind.protocol == pull.protocol && kind.number <= give_up.number;
    }
    static constexpr bool is_to_worker(message_kind kind) {
        return kind.protocol == pull.protocol && answer.number <= kind.number && kind.number <= final.number;
    }
};

/// The tags of a parameter server's session.
inline constexpr std::uint32_t to_servers = 0;
inline constexpr std::uint32_t to_workers = 1;

/// After how long a message is tried again that has met a full mailbox.
constexpr duration nap(duration timeout) { return std::min(timeout / 256, milliseconds(1)); }

}}}  // namespace rill::RILL_ABI::detail
