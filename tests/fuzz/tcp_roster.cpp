// Rosters of a meeting over TCP: any bytes are read, or refused with a `protocol_error`; what is read is written as the
// same bytes again. Any roster that can be told is read as it was written.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_roster.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;

constexpr rank_t self = 1, peer = 2;

void check_read(byte_view bytes, rank_t ranks) {
    std::vector<roster_entry> roster;
    try {
        const rill::fuzz::allocation_budget at_most(8 * bytes.size() + rill::fuzz::error_texts);
        roster = decode_roster(bytes, ranks, self, peer);
    } catch (const protocol_error& error) {
        RILL_FUZZ_REQUIRE(error.notice().culprit == peer, "the sender is blamed");
        return;
    }
    for (const roster_entry& each : roster)
        RILL_FUZZ_REQUIRE(each.rank < ranks && fault_of(each) == nullptr, "an entry that can be");
    const std::vector<std::byte> again = encode_roster(roster);
    RILL_FUZZ_REQUIRE(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "the same bytes");
}

void check_written(rill::fuzz::input& in, rank_t ranks) {
    std::vector<roster_entry> roster;
    for (rank_t rank = 0; rank < ranks && !in.done(); rank += 1 + static_cast<rank_t>(in.below(3))) {
        roster_entry& made = roster.emplace_back();
        made.rank = rank;
        made.incarnation = std::max<std::uint64_t>(in.number<std::uint64_t>(), 1);
        made.host = std::string(1 + in.below(255), static_cast<char>('!' + in.below('\x7f' - '!')));
        made.addresses.resize(1 + in.below(16));
        for (roster_address& at : made.addresses) {
            at.is_v6 = in.flag();
            const byte_view raw = in.bytes(at.size());
            std::copy(raw.begin(), raw.end(), at.bytes.begin());
            if (at.is_v6) at.scope = in.number<std::uint32_t>();
            at.port = std::max<std::uint16_t>(in.number<std::uint16_t>(), 1);
        }
    }
    const std::vector<std::byte> bytes = encode_roster(roster);
    RILL_FUZZ_REQUIRE(decode_roster(bytes, ranks, self, peer) == roster, "the same roster");
}

}  // namespace

RILL_FUZZ_TARGET(tcp_roster)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const bool reads = in.flag();
    const auto ranks = static_cast<rank_t>(1 + in.below(40));
    reads ? check_read(rill::fuzz::copy_of(in.rest()), ranks) : check_written(in, ranks);
    return 0;
}
