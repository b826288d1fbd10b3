// Notes of rill::mpi: any header and content through the check, compared with a naive check; what passes goes through
// all functions that read it. Needs no MPI.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/mail_envelope.hpp>

#include <cstring>
#include <vector>

namespace {

using namespace rill;
using namespace rill::mail;

template <class N>
N at(byte_view bytes, std::size_t offset) {
    N value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

bool is_notice(byte_view content) {
    if (content.size() < 40) return false;
    const auto length = at<std::uint32_t>(content, 24);
    return content.size() == 40 + std::uint64_t{length} && length <= 900 && at<std::int32_t>(content, 16) >= -1 &&
           at<std::int32_t>(content, 20) >= -1 && at<std::uint8_t>(content, 32) <= 5;
}

bool is_announcement(byte_view content, std::size_t pieces, std::size_t small) {
    if (pieces > 4 || content.size() < 32) return false;
    std::size_t inside = 0, large = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
        const auto size = at<std::uint64_t>(content, 8 * i);
        if (size >> 48 != 0 && size != std::uint64_t{1} << 48) return false;
        if (size > small) ++large;
        if (size <= small) inside += size % 8 == 0 ? size : size + 8 - size % 8;
    }
    return large != 0 && content.size() == 32 + inside;
}

bool is_beginning(byte_view content, std::size_t pieces) {
    if (pieces > 4 || content.size() < 32) return false;
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
        const auto size = at<std::uint64_t>(content, 8 * i);
        if (size > std::uint64_t{1} << 48) return false;
        all += size;
    }
    return all > content.size() - 32;
}

bool expected(const envelope& head, byte_view content, std::size_t small) {
    switch (static_cast<unsigned>(head.kind)) {
        case 0:
        case 1: return head.pieces == 0;
        case 2:
        case 3: return is_announcement(content, head.pieces, small);
        case 4: return is_beginning(content, head.pieces);
        case 5: return !content.empty();
        case 6:
            return content.empty() && head.tag >= 1 && head.tag <= 32'000 && head.context >= 1 &&
                   head.context <= std::uint64_t{1} << 20;
        case 11:
        case 12: return is_notice(content);
        case 14: return content.size() == sizeof(call_signature);
        case 17: return content.empty() || is_notice(content);
        default: return static_cast<unsigned>(head.kind) <= 18 && content.empty();
    }
}

void check_notice(byte_view content) {
    const rill::fuzz::allocation_budget at_most(2 * content.size() + 64);
    const abort_notice notice = packed_notice::unpack(content);
    const packed_notice again(notice);
    RILL_FUZZ_REQUIRE(packed_notice::is_whole(again.view()), "a notice that is whole again");
    RILL_FUZZ_REQUIRE(packed_notice::unpack(again.view()) == notice, "the same notice");
}

/// Checks as a receiver does: the sizes add up, there are as many parts as can be asked for, small pieces lie inside.
void check_announcement(byte_view content, std::size_t count, std::size_t small) {
    std::uint64_t size = 0, parts = 0;
    std::size_t inside = announcement::table;
    byte_pieces pieces;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t piece = announcement::size_of_piece(content.data(), i);
        RILL_FUZZ_REQUIRE(size + piece >= size, "a sum that is none");
        size += piece;
        if (piece > small) {
            parts += (piece - 1) / most_part_bytes + 1;
            pieces.push({content.data(), piece});  // never read
            continue;
        }
        RILL_FUZZ_REQUIRE(inside <= content.size() && piece <= content.size() - inside, "a piece that is here");
        pieces.push(content.subspan(inside, piece));
        inside += announcement::aligned(piece);
    }
    RILL_FUZZ_REQUIRE(1 <= parts && parts <= most_parts, "parts that can be asked for");
    std::vector<std::byte> again(announcement::size_bytes(pieces, small));
    RILL_FUZZ_REQUIRE(again.size() == content.size(), "the size as announced");
    announcement::write(pieces, small, again.data());
    RILL_FUZZ_REQUIRE(announcement::is_whole(again, count, small), "an announcement that is whole again");
    for (std::size_t i = 0; i < count; ++i)
        RILL_FUZZ_REQUIRE(announcement::size_of_piece(again.data(), i) == pieces[i].size(), "the same sizes");
}

}  // namespace

RILL_FUZZ_TARGET(notes)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const std::size_t small = in.number<std::uint16_t>();
    envelope head{.context = in.number<std::uint64_t>(),
                  .tag = in.number<std::uint32_t>(),
                  .kind = static_cast<note>(in.number<std::uint8_t>()),
                  .pieces = in.number<std::uint8_t>()};
    const buffer content = rill::fuzz::copy_of(in.rest());
    head.size = static_cast<std::uint32_t>(content.size());

    const bool accepted = is_whole(head, content.data(), small);
    RILL_FUZZ_REQUIRE(accepted == expected(head, content, small), "both checks accept, or none");
    if (!accepted) return 0;
    const bool has_ended = head.kind == note::ended && !content.empty();
    if (head.kind == note::report || head.kind == note::verdict || has_ended) check_notice(content);
    if (head.kind == note::announce_lent || head.kind == note::announce_handed)
        check_announcement(content, head.pieces, small);
    return 0;
}
