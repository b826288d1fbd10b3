// Who takes part in a job and where: what ranks tell each other when they meet.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Where a rank listens. An address of IPv4 has 4 bytes, the rest is 0.
struct roster_address {
    bool is_v6 = false;
    std::array<std::byte, 16> bytes{};
    std::uint32_t scope = 0;  ///< of IPv6
    std::uint16_t port = 0;   ///< never 0 in a roster
    std::uint8_t card = 0;    ///< which of the rank's network cards

    std::size_t size() const { return is_v6 ? 16 : 4; }
    friend bool operator==(const roster_address&, const roster_address&) = default;
};

/// One rank: which start of it (`incarnation`, never 0), on which host, and where it listens. Two ranks share a host
/// exactly where `host` is equal.
struct roster_entry {
    static constexpr std::size_t most_host = 255, most_addresses = 16, most_cards = 8;

    rank_t rank = 0;
    std::uint64_t incarnation = 0;
    std::string host;
    std::vector<roster_address> addresses;

    /// Whether the name of a host may have this character.
    static bool is_plain(char each) { return each > ' ' && each < '\x7f'; }
    friend bool operator==(const roster_entry&, const roster_entry&) = default;
};

/// How many network cards a rank has.
inline std::size_t cards_of(const roster_entry& entry) {
    std::size_t count = 1;
    for (const roster_address& each : entry.addresses) count = std::max<std::size_t>(count, each.card + 1U);
    return count;
}

/// What is wrong with an entry, or null.
inline const char* fault_of(const roster_entry& entry) {
    if (entry.rank < 0) return "a roster with a negative rank";
    if (entry.incarnation == 0) return "a roster with an incarnation of 0";
    if (entry.host.empty() || entry.host.size() > roster_entry::most_host)
        return "a roster with a host of a wrong length";
    if (!std::all_of(entry.host.begin(), entry.host.end(), roster_entry::is_plain))
        return "a roster with a host that is no plain text";
    if (entry.addresses.empty() || entry.addresses.size() > roster_entry::most_addresses)
        return "a roster with a wrong number of addresses";
    std::size_t last = 0;
    for (const roster_address& each : entry.addresses) {
        if (each.port == 0) return "a roster with a port of 0";
        const bool is_next = each.card == last + 1 && &each != &entry.addresses.front();
        if ((each.card != last && !is_next) || each.card >= roster_entry::most_cards)
            return "a roster whose network cards do not ascend";
        last = each.card;
    }
    return nullptr;
}

/// The bytes of a roster: its ranks ascend. Throws `contract_violation` where an entry cannot be told.
inline std::vector<std::byte> encode_roster(std::span<const roster_entry> roster) {
    std::vector<std::byte> made;
    const auto add = [&](std::uint64_t number, std::size_t count) {
        made.resize(made.size() + count);
        put(made.data() + made.size() - count, number, count);
    };
    const auto add_bytes = [&](byte_view bytes) { made.insert(made.end(), bytes.begin(), bytes.end()); };
    add(roster.size(), 4);
    for (std::size_t i = 0; i < roster.size(); ++i) {
        const roster_entry& each = roster[i];
        const char* const fault = fault_of(each);
        RILL_EXPECTS(fault == nullptr, fault);
        RILL_EXPECTS(i == 0 || roster[i - 1].rank < each.rank, "the ranks of a roster ascend");
        add(static_cast<std::uint64_t>(each.rank), 4);
        add(each.incarnation, 8);
        add(each.host.size(), 1);
        add_bytes(std::as_bytes(std::span(each.host)));
        add(each.addresses.size(), 1);
        for (const roster_address& at : each.addresses) {
            add((at.is_v6 ? 6U : 4U) | static_cast<unsigned>(at.card) << 4, 1);
            add_bytes(byte_view(at.bytes).first(at.size()));
            if (at.is_v6) add(at.scope, 4);
            add(at.port, 2);
        }
    }
    return made;
}

/// Reads numbers and bytes that a peer sent.
class roster_reader {
  public:
    roster_reader(byte_view bytes, rank_t self, rank_t peer) : left_(bytes), self_(self), peer_(peer) {}

    byte_view take(std::size_t count) {
        if (count > left_.size()) refuse("a roster that is cut off");
        const byte_view taken = left_.first(count);
        left_ = left_.subspan(count);
        return taken;
    }
    std::uint64_t number(std::size_t count) { return get(take(count).data(), count); }
    std::size_t left() const { return left_.size(); }
    [[noreturn]] void refuse(const char* what) const { refuse_bytes(self_, peer_, what); }

  private:
    byte_view left_;
    rank_t self_, peer_;
};

/// The roster that rank `peer` sent rank `self` of `ranks` ranks. Throws `protocol_error` that names the peer where the
/// bytes are no roster, or name a rank twice or one that the job has not. Allocates no more than the bytes account for.
inline std::vector<roster_entry> decode_roster(byte_view bytes, rank_t ranks, rank_t self, rank_t peer) {
    constexpr std::size_t least_entry = 4 + 8 + 1 + 1 + 1 + 7;
    roster_reader from(bytes, self, peer);
    const auto count = static_cast<std::size_t>(from.number(4));
    if (count > static_cast<std::size_t>(ranks)) from.refuse("a roster of more ranks than the job has");
    if (count > from.left() / least_entry) from.refuse("a roster that is cut off");
    std::vector<roster_entry> roster(count);
    std::uint64_t least = 0;
    for (roster_entry& each : roster) {
        const std::uint64_t rank = from.number(4);
        if (rank < least) from.refuse("a roster whose ranks do not ascend");
        if (rank >= static_cast<std::uint64_t>(ranks)) from.refuse("a roster with a rank that the job has not");
        least = rank + 1;
        each.rank = static_cast<rank_t>(rank);
        each.incarnation = from.number(8);
        const byte_view host = from.take(static_cast<std::size_t>(from.number(1)));
        each.host.assign(reinterpret_cast<const char*>(host.data()), host.size());
        const auto addresses = static_cast<std::size_t>(from.number(1));
        if (addresses > roster_entry::most_addresses) from.refuse("a roster with a wrong number of addresses");
        each.addresses.resize(addresses);
        for (roster_address& at : each.addresses) {
            const std::uint64_t first = from.number(1), family = first & 15;
            at.card = static_cast<std::uint8_t>(first >> 4);
            if (family != 4 && family != 6) from.refuse("a roster with an address of an unknown family");
            at.is_v6 = family == 6;
            const byte_view raw = from.take(at.size());
            std::copy(raw.begin(), raw.end(), at.bytes.begin());
            if (at.is_v6) at.scope = static_cast<std::uint32_t>(from.number(4));
            at.port = static_cast<std::uint16_t>(from.number(2));
        }
        if (const char* const fault = fault_of(each)) from.refuse(fault);
    }
    if (from.left() != 0) from.refuse("a roster with bytes behind its end");
    return roster;
}

}}}  // namespace rill::RILL_ABI::tcp::detail
