// What errors say where two processes do not belong together.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>

#include <string>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Why a rank that dialled does not fit to the one that it dialled.
inline std::string mismatch_text(handshake::refusal why, const handshake::identity& dialled,
                                 const handshake::identity& by) {
    using refusal = handshake::refusal;
    const std::string who = text_of({"rank ", by.rank}), other = text_of({"rank ", dialled.rank});
    switch (why) {
        case refusal::version: return who + " has another version of rill";
        case refusal::job: return who + " belongs to another job";
        case refusal::build: return who + " has another version of rill";
        case refusal::ranks:
            return text_of({who, " expects ", by.ranks, " ranks or seats, ", other, " ", dialled.ranks});
        case refusal::rank:
            return by.rank == dialled.rank ? "two processes say that they are " + who : who + " is none of the job";
        case refusal::purpose: return "the ranks have met already";
        case refusal::key: return who + " has another key than " + other;
        default: return text_of({other, " refuses ", who, ", reason ", static_cast<int>(why)});
    }
}

/// How a rank secures connections otherwise than rank 0.
inline const char* security_text(handshake::mode own, handshake::mode first) {
    using mode = handshake::mode;
    if (own == mode::bare) return " has no key, rank 0 has one";
    if (first == mode::bare) return " has a key, rank 0 has none";
    return own == mode::encrypted ? " encrypts, rank 0 does not" : " does not encrypt, rank 0 does";
}

/// How a process that came secures connections otherwise than this rank.
inline const char* guest_security_text(handshake::mode own, handshake::mode guest) {
    using mode = handshake::mode;
    if (own == mode::bare) return "with a key";
    if (guest == mode::bare) return "without a key";
    return guest == mode::encrypted ? "that encrypts" : "that does not encrypt";
}

/// Why the rank `own` was refused by the process that it dialled in place of rank 0.
inline std::string refusal_text(const handshake& by, const handshake::identity& own) {
    using refusal = handshake::refusal;
    if (by.why() == refusal::foreign) return "what answers is no rank of a job";
    if (by.why() == refusal::rank && by.peer().rank != 0) return text_of({"what answers is rank ", by.peer().rank});
    if (by.why() == refusal::security)
        return text_of({"rank ", own.rank, security_text(by.own_mode(), by.peer_mode())});
    handshake::identity dialled = by.peer();
    dialled.rank = 0;  // not yet read where the protocols differ
    return mismatch_text(by.why(), dialled, own);
}

/// Whether no later dial to the meeting point can succeed. Else somebody else than rank 0 has answered, or rank 0 in a
/// meeting that is over, or it has not noticed yet that an earlier connection is lost.
inline bool is_final(const handshake& by) {
    using refusal = handshake::refusal;
    switch (by.why()) {
        case refusal::version:
        case refusal::security:
        case refusal::job:
        case refusal::build:
        case refusal::ranks:
        case refusal::key: return true;
        case refusal::rank: return by.peer().rank == 0;
        default: return false;
    }
}

}}}  // namespace rill::RILL_ABI::tcp::detail
