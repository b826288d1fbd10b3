// What an end of an encrypted connection of TCP reads before the other end has proved who it is: any bytes, or what an
// end with the same secret or another one says, with changed bytes, in pieces of any size. Without the secret nothing
// is ever ready; two ends that are ready share one value.
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_tls.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using state = tls::state;

const tls_context& context_of(unsigned char fill) {
    std::array<std::byte, 32> secret;
    secret.fill(static_cast<std::byte>(fill));
    static std::map<unsigned char, tls_context> all;
    return all.try_emplace(fill, secret).first->second;
}

/// Hands over bytes while there is room; returns how many.
std::size_t feed(tls& to, byte_view bytes, std::size_t piece) {
    std::size_t fed = 0;
    while (!bytes.empty()) {
        const byte_span room = to.room();
        RILL_FUZZ_REQUIRE(room.size() <= tls::most_untrusted, "little memory for a stranger");
        const std::size_t count = std::min({piece, room.size(), bytes.size()});
        if (count == 0) break;
        std::copy_n(bytes.begin(), count, room.begin());
        to.arrived(count);
        bytes = bytes.subspan(count);
        fed += count;
        std::byte any[100];
        while (to.take(any) != 0) {
        }
    }
    return fed;
}

void check_any_bytes(bool dials, byte_view bytes, std::size_t piece) {
    tls end(context_of(1), dials);
    const std::size_t fed = feed(end, bytes, piece);
    RILL_FUZZ_REQUIRE(fed <= tls::most_untrusted, "few bytes of a stranger");
    RILL_FUZZ_REQUIRE(end.now() != state::ready, "a stranger that completes no handshake");
    const bool speaks_tls = bytes.empty() || (bytes[0] >= std::byte{20} && bytes[0] <= std::byte{23});
    RILL_FUZZ_REQUIRE((end.now() == state::clear) == !speaks_tls, "clear where it hears no record");
    RILL_FUZZ_REQUIRE(fed == bytes.size() || end.now() == state::failed || fed == tls::most_untrusted, "all is read");
}

/// `in` has changes: a place among the bytes that the end reads, in two bytes, and what is changed there.
void check_changed(rill::fuzz::input& in, bool dials, bool has_secret, std::size_t piece) {
    tls tried(context_of(1), dials), other(context_of(has_secret ? 1 : 2), !dials);
    std::map<std::size_t, std::byte> changes;
    while (!in.done()) {
        const std::size_t place = in.number<std::uint16_t>() % 1024;
        changes[place] ^= static_cast<std::byte>(in.number<std::uint8_t>());
    }
    std::size_t read = 0;
    for (bool moved = true; moved;) {
        buffer way = rill::fuzz::copy_of(other.outgoing());
        other.wrote(way.size());
        for (const auto& [place, change] : changes)
            if (place - read < way.size()) way[place - read] ^= change;
        read += way.size();
        moved = feed(tried, way, piece) != 0;
        const buffer back = rill::fuzz::copy_of(tried.outgoing());
        tried.wrote(back.size());
        moved = feed(other, back, piece) != 0 || moved;
    }
    if (!has_secret)
        RILL_FUZZ_REQUIRE(tried.now() != state::ready && other.now() != state::ready, "nothing without the secret");
    if (tried.now() == state::ready && other.now() == state::ready)
        RILL_FUZZ_REQUIRE(tried.exported() == other.exported(), "one value");
    const bool is_changed =
        std::any_of(changes.begin(), changes.end(), [](const auto& each) { return each.second != std::byte{}; });
    if (has_secret && !is_changed)
        RILL_FUZZ_REQUIRE(tried.now() == state::ready && other.now() == state::ready, "two ends of one job");
}

}  // namespace

RILL_FUZZ_TARGET(tcp_tls)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const bool dials = in.flag();
    const unsigned chosen = in.below(3);
    const std::size_t piece = 1 + in.number<std::uint8_t>();
    chosen == 0 ? check_any_bytes(dials, in.rest(), piece) : check_changed(in, dials, chosen == 1, piece);
    return 0;
}
