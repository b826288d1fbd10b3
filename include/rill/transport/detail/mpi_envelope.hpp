// What travels on the communicator of notes: a fixed head, then up to `eager_bytes`. All ranks run the same build on
// machines of one kind, which group creation checks; nothing is converted.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace rill::inline RILL_ABI::mpi::detail {

enum class note : std::uint8_t {
    lent,             ///< a borrowed message, all of it
    handed,           ///< a handed-over message, all of it
    announce_lent,    ///< a message that waits at its sender: the sizes of its pieces, and the small ones
    announce_handed,  ///< the same of a handed-over one
    ask,              ///< for message `id`, to be sent with MPI tag `tag` in `context` parts
    withdraw,         ///< message `id` will not be sent
    drop,             ///< message `id` will not be asked for
    credit,           ///< `id` handed-over bytes have been taken
    want,             ///< the sender waits for credit
    report,           ///< to rank 0: an abort, which may be the first
    verdict,          ///< the notice that ended a context
    question,         ///< has `context` entered call `id`? Answered when it has
    answer,           ///< what was entered
    leave,            ///< to rank 0: this rank has ended; it has failed if `id` is not 0
    all_left          ///< all have; one has failed if `id` is not 0
};

struct envelope {
    std::uint64_t context = 0;
    std::uint64_t id = 0;
    std::uint32_t incarnation = 0;
    std::uint32_t tag = 0;
    std::uint32_t size = 0;  ///< bytes that follow
    note kind = note::lent;
    std::uint8_t pieces = 0;
    std::uint16_t unused = 0;
};
static_assert(sizeof(envelope) == 32);

/// The smallest `eager_bytes`: notices and calls must fit.
inline constexpr std::size_t least_eager_bytes = 1024;

/// An abort notice as bytes.
struct packed_notice {
    static constexpr std::size_t most_text = 900;
    struct fixed_part {
        std::uint64_t context, operation;
        std::int32_t culprit, other;
        std::uint32_t length;
        failure kind;
    };
    std::byte bytes[sizeof(fixed_part) + most_text];
    std::size_t size = 0;

    explicit packed_notice(const abort_notice& notice) {
        const fixed_part fixed{.context = notice.context,
                               .operation = notice.operation,
                               .culprit = notice.culprit,
                               .other = notice.other,
                               .length = static_cast<std::uint32_t>(std::min(notice.reason.size(), most_text)),
                               .kind = notice.kind};
        std::memcpy(bytes, &fixed, sizeof fixed);
        std::memcpy(bytes + sizeof fixed, notice.reason.data(), fixed.length);
        size = sizeof fixed + fixed.length;
    }

    byte_view view() const { return {bytes, size}; }

    static abort_notice unpack(byte_view from) {
        fixed_part fixed;
        std::memcpy(&fixed, from.data(), sizeof fixed);
        return {.context = fixed.context,
                .operation = fixed.operation,
                .kind = fixed.kind,
                .culprit = fixed.culprit,
                .other = fixed.other,
                .reason = {reinterpret_cast<const char*>(from.data() + sizeof fixed), fixed.length}};
    }
};
static_assert(sizeof(packed_notice::bytes) <= least_eager_bytes && sizeof(call_signature) <= least_eager_bytes);

/// The reason as every rank will know it: cut to what travels.
inline abort_notice travelling(abort_notice notice) {
    if (notice.reason.size() > packed_notice::most_text) notice.reason.resize(packed_notice::most_text);
    return notice;
}

}  // namespace rill::inline RILL_ABI::mpi::detail
