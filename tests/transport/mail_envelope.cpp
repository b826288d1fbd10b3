#include <rill/transport/detail/mail_envelope.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace rill::mail;

bool is_whole_at(note kind, rill::byte_view content, std::uint8_t pieces = 0, std::size_t small = 64) {
    return is_whole({.size = static_cast<std::uint32_t>(content.size()), .kind = kind, .pieces = pieces},
                    content.data(), small);
}

bool only_whole_is_whole(note kind, std::vector<std::byte> content, std::uint8_t pieces = 0) {
    const std::size_t size = content.size();
    content.resize(size + 1);
    for (std::size_t taken = 0; taken <= size + 1; ++taken)
        if (is_whole_at(kind, {content.data(), taken}, pieces) != (taken == size)) return false;
    return true;
}

}  // namespace

TEST_CASE("a notice that is truncated, or longer than it says, is refused") {
    const packed_notice packed({.operation = 3, .culprit = 2, .reason = "rank 2 failed: of reasons"});
    const std::vector<std::byte> bytes(packed.view().begin(), packed.view().end());
    CHECK(only_whole_is_whole(note::report, bytes));
    CHECK(only_whole_is_whole(note::verdict, bytes));
    CHECK(packed_notice::unpack(bytes).reason == "rank 2 failed: of reasons");
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        auto changed = bytes;
        changed[at] ^= std::byte{0x80};
        if (is_whole_at(note::verdict, changed)) CHECK(packed_notice::unpack(changed).reason.size() == 25);
    }
}

TEST_CASE("an announcement holds the sizes of its pieces, and the small pieces whole") {
    const std::vector<std::byte> small(13), large(65);
    rill::byte_pieces pieces(small);
    pieces.push(large);
    std::vector<std::byte> bytes(announcement::size_bytes(pieces, 64));
    announcement::write(pieces, 64, bytes.data());
    CHECK(bytes.size() == announcement::table + 16);
    CHECK(announcement::size_of_piece(bytes.data(), 0) == 13);
    CHECK(announcement::size_of_piece(bytes.data(), 1) == 65);
    CHECK(only_whole_is_whole(note::announce_lent, bytes, 2));
    CHECK_FALSE(is_whole_at(note::announce_handed, bytes, rill::byte_pieces::most + 1));
    // Otherwise the first piece would not be in the note.
    CHECK_FALSE(is_whole_at(note::announce_handed, bytes, 2, 12));
}

TEST_CASE("a notice of an unknown kind of failure, or of an impossible rank, is refused") {
    const packed_notice packed({.culprit = 2, .reason = "rank 2 failed"});
    const auto is_whole_with = [&](std::size_t at, int value) {
        std::vector<std::byte> bytes(packed.view().begin(), packed.view().end());
        bytes[at] = static_cast<std::byte>(value);
        return is_whole_at(note::verdict, bytes);
    };
    using fixed = packed_notice::fixed_part;
    CHECK(is_whole_with(offsetof(fixed, kind), static_cast<int>(rill::failure::deadlock)));
    CHECK_FALSE(is_whole_with(offsetof(fixed, kind), static_cast<int>(rill::failure::deadlock) + 1));
    CHECK_FALSE(is_whole_with(offsetof(fixed, culprit) + 3, 0x80));
    CHECK_FALSE(is_whole_with(offsetof(fixed, other) + 3, 0x80));
}

TEST_CASE("announced sizes must not overflow, and one of them must be large") {
    const auto is_whole_of = [](std::uint64_t first, std::uint64_t second) {
        std::vector<std::byte> bytes(announcement::table + (first <= 64 ? announcement::aligned(first) : 0) +
                                     (second <= 64 ? announcement::aligned(second) : 0));
        std::memcpy(bytes.data(), &first, sizeof first);
        std::memcpy(bytes.data() + sizeof first, &second, sizeof second);
        return is_whole_at(note::announce_handed, bytes, 2);
    };
    CHECK(is_whole_of(most_piece_bytes, most_piece_bytes));
    CHECK_FALSE(is_whole_of(most_piece_bytes + 1, 65));
    CHECK_FALSE(is_whole_of(65, ~std::uint64_t{0}));
    CHECK_FALSE(is_whole_of(64, 64));
}

TEST_CASE("a request must have a possible number of parts and a possible tag") {
    const auto is_whole_ask = [](std::uint64_t parts, std::uint32_t tag) {
        return is_whole({.context = parts, .tag = tag, .kind = note::ask}, nullptr, 64);
    };
    CHECK((is_whole_ask(1, 1) && is_whole_ask(most_parts, most_data_tag)));
    CHECK_FALSE(is_whole_ask(0, 1));
    CHECK_FALSE(is_whole_ask(most_parts + 1, 1));
    CHECK_FALSE(is_whole_ask(1, 0));
    CHECK_FALSE(is_whole_ask(1, most_data_tag + 1));
}

TEST_CASE("a note of an unknown kind, or with content where its kind has none, is refused") {
    const std::byte content{};
    CHECK(is_whole_at(note::credit, {}));
    CHECK_FALSE(is_whole_at(note::credit, {&content, 1}));
    CHECK_FALSE(is_whole_at(static_cast<note>(static_cast<int>(note::loss) + 1), {}));
    CHECK(only_whole_is_whole(note::answer, std::vector<std::byte>(sizeof(rill::call_signature))));
}
