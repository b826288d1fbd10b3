// The notes that travel on the communicator of notes: a fixed head, then up to `eager_bytes`. Nothing is converted,
// since all ranks run the same build on machines of one kind, which group creation checks.
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

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What an envelope announces or asks.
enum class note : std::uint8_t {
    lent,             ///< a borrowed message, all of it
    handed,           ///< a handed-over message, all of it
    announce_lent,    ///< a borrowed message that waits at its sender: sizes of its pieces, content of the small ones
    announce_handed,  ///< a handed-over message that waits at its sender: sizes, content of the small pieces
    begin,            ///< a borrowed message that comes unasked: sizes of its pieces, then the first bytes of them
    go_on,            ///< the next bytes of message `id`, which has begun
    ask,              ///< asks for message `id`, to be sent with tag `tag` in `context` parts
    withdraw,         ///< message `id` will not be sent, or not the rest of it
    drop,             ///< message `id` will not be asked for, or no more of it is wanted
    credit,           ///< `id` handed-over bytes have been taken, and `context` bytes that came unasked
    want,             ///< the sender waits for credit
    report,           ///< an abort, which may be the first: to rank 0, or to all if rank 0 does not answer
    verdict,          ///< the notice that ended a context
    question,         ///< asks whether the receiver has entered call `id` of `context`; answered once it has
    answer,           ///< the call that was entered
    leave,    ///< in round k, to the rank 2^k above: this rank and the 2^k - 1 below it have ended; `id` is 2 k,
              ///< and one more if one of them has failed
    monitor,  ///< the sender wants to be told when the body of the receiver has ended; `id` is 0 if it goes on then
    ended,    ///< the body of the sender has ended; its exception, if it has thrown
    loss      ///< rank `id` has gone without a farewell: to those that have not sent `monitor`
};

/// What precedes the bytes of every message between ranks.
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
/// Large pieces are cut into parts of at most this size, because MPI, a port, counts in int.
inline constexpr std::size_t most_part_bytes = std::size_t{1} << 30;
/// More than any address space has, and small enough that sums do not overflow.
inline constexpr std::uint64_t most_piece_bytes = std::uint64_t{1} << 48;
/// The most parts that a message is cut into.
inline constexpr std::uint64_t most_parts = byte_pieces::most * (most_piece_bytes / most_part_bytes);
/// Below 32767, up to which every MPI has tags.
inline constexpr std::uint32_t most_data_tag = 32'000;

/// An abort notice as bytes.
struct packed_notice {
    static constexpr std::size_t most_text = 900;
    struct fixed_part {
        std::uint64_t context, operation;
        std::int32_t culprit, other;
        std::uint32_t length, first_tag;
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
                               .first_tag = notice.first_tag,
                               .kind = notice.kind};
        std::memcpy(bytes, &fixed, sizeof fixed);
        std::memcpy(bytes + sizeof fixed, notice.reason.data(), fixed.length);
        size = sizeof fixed + fixed.length;
    }

    byte_view view() const { return {bytes, size}; }

    static bool is_whole(byte_view from) {
        if (from.size() < sizeof(fixed_part)) return false;
        const fixed_part fixed = read(from);
        return from.size() == sizeof(fixed_part) + fixed.length && fixed.length <= most_text &&
               fixed.kind <= failure::deadlock && fixed.culprit >= no_rank && fixed.other >= no_rank;
    }
    static abort_notice unpack(byte_view from) {
        const fixed_part fixed = read(from);
        return {.context = fixed.context,
                .operation = fixed.operation,
                .kind = fixed.kind,
                .culprit = fixed.culprit,
                .other = fixed.other,
                .reason = {reinterpret_cast<const char*>(from.data() + sizeof fixed), fixed.length},
                .first_tag = fixed.first_tag};
    }

  private:
    static fixed_part read(byte_view from) {
        fixed_part fixed;
        std::memcpy(&fixed, from.data(), sizeof fixed);
        return fixed;
    }
};
static_assert(sizeof(packed_notice::bytes) <= least_eager_bytes && sizeof(call_signature) <= least_eager_bytes);

/// The content of an announcement: the sizes of all pieces, then the content of the small ones. The large pieces follow
/// when the receiver asks for the message.
struct announcement {
    static constexpr std::size_t table = byte_pieces::most * sizeof(std::uint64_t);

    static std::size_t aligned(std::size_t size) { return (size + 7) / 8 * 8; }
    static std::size_t size_bytes(const byte_pieces& pieces, std::size_t small) {
        std::size_t size = table;
        for (const byte_view piece : pieces) size += piece.size() <= small ? aligned(piece.size()) : 0;
        return size;
    }
    static void write_sizes(const byte_pieces& pieces, std::byte* at) {
        for (const byte_view piece : pieces) {
            const std::uint64_t size = piece.size();
            std::memcpy(at, &size, sizeof size);
            at += sizeof size;
        }
    }
    static void write(const byte_pieces& pieces, std::size_t small, std::byte* at) {
        write_sizes(pieces, at);
        std::byte* content = at + table;
        for (const byte_view piece : pieces) {
            if (piece.size() > small || piece.empty()) continue;
            std::memcpy(content, piece.data(), piece.size());
            content += aligned(piece.size());
        }
    }
    static std::uint64_t size_of_piece(const std::byte* at, std::size_t i) {
        std::uint64_t size = 0;
        std::memcpy(&size, at + i * sizeof size, sizeof size);
        return size;
    }
    static std::uint64_t size_of_pieces(const std::byte* at, std::size_t count) {
        std::uint64_t size = 0;
        for (std::size_t i = 0; i < count; ++i) size += size_of_piece(at, i);
        return size;
    }
    static bool is_whole(byte_view from, std::size_t pieces, std::size_t small) {
        if (pieces > byte_pieces::most || from.size() < table) return false;
        std::size_t size = table;
        bool any_large = false;  // otherwise there would be nothing to ask for
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::uint64_t piece = size_of_piece(from.data(), i);
            if (piece > most_piece_bytes) return false;
            if (piece > small)
                any_large = true;
            else
                size += aligned(piece);
        }
        return any_large && from.size() == size;
    }
    /// Of a message that comes unasked: the sizes of all pieces, then some of their bytes, but not all.
    static bool is_beginning(byte_view from, std::size_t pieces) {
        if (pieces > byte_pieces::most || from.size() < table) return false;
        std::uint64_t size = 0;
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::uint64_t piece = size_of_piece(from.data(), i);
            if (piece > most_piece_bytes) return false;
            size += piece;
        }
        return from.size() - table < size;
    }
};

/// Whether a note has the content that its kind requires. Pieces of up to `small` bytes travel with an announcement.
inline bool is_whole(const envelope& head, const std::byte* payload, std::size_t small) {
    const byte_view content(payload, head.size);
    switch (head.kind) {
        case note::lent:
        case note::handed: return head.pieces == 0;
        case note::announce_lent:
        case note::announce_handed: return announcement::is_whole(content, head.pieces, small);
        case note::begin: return announcement::is_beginning(content, head.pieces);
        case note::go_on: return !content.empty();
        case note::report:
        case note::verdict: return packed_notice::is_whole(content);
        case note::ended: return content.empty() || packed_notice::is_whole(content);
        case note::answer: return content.size() == sizeof(call_signature);
        case note::ask:
            return content.empty() && 0 < head.tag && head.tag <= most_data_tag && 0 < head.context &&
                   head.context <= most_parts;
        default: return head.kind <= note::loss && content.empty();
    }
}

/// Cuts the reason of a notice to the length that travels, so that all ranks know the same text.
inline abort_notice travelling(abort_notice notice) {
    if (notice.reason.size() > packed_notice::most_text) notice.reason.resize(packed_notice::most_text);
    return notice;
}

}}}  // namespace rill::RILL_ABI::mail
