// What another rank tells while ranks meet over TCP, to rank 0 or from it, in pieces of any size: any bytes are read as
// a naive reader says, or refused with a `protocol_error`; what is read is written as the same bytes again.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_meeting_words.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using kind = meeting_word::kind;

constexpr std::array<meeting_word::option, 2> own{{{"first", 1}, {"second", 2}}};
constexpr std::uint64_t incarnation = 3;

/// What the reader takes of the bytes: the size of the word, 0 where its head cannot be, `bytes` where it is cut off.
std::size_t expected_size(byte_view bytes, rank_t ranks, bool is_first) {
    if (bytes.size() < 8) return bytes.size();
    std::uint32_t content = 0;
    std::memcpy(&content, bytes.data() + 4, 4);
    const auto what = std::to_integer<int>(bytes[0]);
    const std::size_t most_entry = 14 + 255 + 16 * 23;
    std::size_t most = 0;
    if (is_first && what == 1) most = 16 * 8 + 4 + most_entry;
    if (!is_first && what == 2) most = 4 + most_entry * static_cast<std::size_t>(ranks);
    if (!is_first && what == 3) most = 1 + 4 + 4096;
    const bool has_zeros =
        std::all_of(bytes.begin() + 1, bytes.begin() + 4, [](std::byte at) { return at == std::byte{}; });
    if (!has_zeros || content == 0 || content > most) return 0;
    return std::min(bytes.size(), 8 + std::size_t{content});
}

void require_same(const std::vector<std::byte>& again, byte_view said) {
    RILL_FUZZ_REQUIRE(std::equal(again.begin(), again.end(), said.begin(), said.end()), "the same bytes");
}

void check_word(const meeting_reader& words, byte_view said, rank_t peer) {
    if (words.kind() == kind::roster) {
        require_same(meeting_word::of_roster(words.roster()), said);
    } else if (words.kind() == kind::refusal) {
        require_same(meeting_word::of_refusal(words.refusal()), said);
    } else {
        const char* differs = nullptr;
        const roster_entry told = words.entry(own, incarnation, differs);
        RILL_FUZZ_REQUIRE(told.rank == peer && told.incarnation == incarnation, "the entry of the peer");
        auto options = own;
        for (std::size_t i = 0; i < options.size(); ++i)
            std::memcpy(&options[i].value, said.data() + 8 + 8 * i, sizeof options[i].value);
        const char* const expected = options[0].value != own[0].value   ? own[0].name
                                     : options[1].value != own[1].value ? own[1].name
                                                                        : nullptr;
        RILL_FUZZ_REQUIRE(differs == expected, "the first option that differs");
        require_same(meeting_word::of_entry(options, told), said);
    }
}

}  // namespace

RILL_FUZZ_TARGET(tcp_meeting)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const bool is_first = in.flag();
    const auto ranks = static_cast<rank_t>(2 + in.below(40));
    const std::size_t piece = 1 + in.below(80);
    const buffer bytes = rill::fuzz::copy_of(in.rest());
    const rank_t self = is_first ? 0 : 1, peer = is_first ? 1 : 0;
    const std::size_t expected = expected_size(bytes, ranks, is_first);
    const rill::fuzz::allocation_budget at_most(32 * size + (std::size_t{128} << 10) + rill::fuzz::error_texts);
    meeting_reader words(ranks, self, peer);
    std::size_t taken = 0;
    try {
        while (taken < bytes.size() && !words.is_whole()) {
            const byte_span room = words.room();
            const std::size_t count = std::min({piece, room.size(), bytes.size() - taken});
            std::memcpy(room.data(), bytes.data() + taken, count);
            taken += count;
            words.arrived(count);
        }
        RILL_FUZZ_REQUIRE(taken == expected, "as many bytes as the word has");
        if (words.is_whole()) check_word(words, byte_view(bytes).first(taken), peer);
    } catch (const protocol_error& error) {
        RILL_FUZZ_REQUIRE(error.notice().culprit == peer, "the sender is blamed");
        RILL_FUZZ_REQUIRE(words.is_whole() || expected == 0, "only what cannot be");
    }
    return 0;
}
