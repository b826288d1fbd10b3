// What a rank knows of the others.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <netinet/in.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

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

/// What one rank knows of all others when they have met: what it takes to make connections.
struct mesh {
    rank_t rank = 0;
    int ranks = 1;                                 ///< seats
    int neighbours = 1;                            ///< ranks of this host, this one included
    std::vector<std::vector<socket>> listeners{};  ///< where peers reach this rank, by network card
    std::vector<roster_entry> roster{};  ///< by rank: where this rank reaches its peers; on a free seat incarnation 0
    handshake::identity own{};           ///< says `purpose::mail`
    bool takes_newcomers = false;
    std::vector<socket_address> points{};       ///< the addresses of the meeting points; of a file none
    std::vector<meeting_word::option> alike{};  ///< what all ranks must have alike
    tcp::key secret{};
    std::unique_ptr<tls_context> encrypts{};  ///< null: nothing is encrypted

    roster_entry& at(rank_t of) { return roster[static_cast<std::size_t>(of)]; }
    const roster_entry& at(rank_t of) const { return roster[static_cast<std::size_t>(of)]; }
    credentials security() const { return {secret.prover(), encrypts.get()}; }
};

/// Of a rank that knows of no other one yet, and begins now.
inline mesh mesh_of(const options& chosen) {
    mesh made;
    made.rank = chosen.rank;
    made.ranks = chosen.size();
    made.takes_newcomers = chosen.seats != 0;
    made.alike = {{"eager_bytes", chosen.eager_bytes},
                  {"chunk_bytes", chosen.chunk_bytes},
                  {"mailbox_bytes", chosen.mailbox_bytes},
                  {"window_bytes", chosen.window_bytes},
                  {"ranks", static_cast<std::uint64_t>(chosen.ranks)},
                  {"seats", static_cast<std::uint64_t>(chosen.seats)},
                  {"security", static_cast<std::uint64_t>(chosen.security)},
                  {"interfaces: all ranks choose some, or none does", std::uint64_t{!chosen.interfaces.empty()}}};
    if (chosen.security != security::open) made.secret = chosen.key;
    if (chosen.security == security::encrypted && made.ranks > 1)
        made.encrypts = std::make_unique<tls_context>(made.secret.tls_secret());
    std::uint64_t job = 0;
    for (const char each : std::string_view(chosen.job)) job = mix64(job, static_cast<unsigned char>(each));
    made.own = {.why = handshake::purpose::mail,
                .job = job,
                .build = mix64(mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR), RILL_VERSION_PATCH),
                .ranks = made.ranks,
                .rank = chosen.rank,
                .incarnation = random_number() | 1};
    return made;
}

}}}  // namespace rill::RILL_ABI::tcp::detail
