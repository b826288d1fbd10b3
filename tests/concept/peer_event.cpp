#include <rill/concept/peer_event.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

using rill::peer_change;
using rill::peer_event;

namespace {

/// A message in two pieces.
struct message {
    rill::buffer bytes;
    std::size_t cut = 0;
    rill::rank_t source() const { return 3; }
    std::vector<rill::byte_view> pieces() const {
        const rill::byte_view all(bytes);
        return {all.subspan(0, cut), all.subspan(cut)};
    }
};

bool is_refused(const rill::buffer& bytes) {
    try {
        rill::read_peer_event(message{bytes, bytes.size() / 2});
    } catch (const rill::protocol_error& refused) {
        return std::string(refused.what()).find("rank 3") != std::string::npos;
    }
    return false;
}

}  // namespace

TEST_CASE("a peer_event is read as it was written, however it is cut into pieces") {
    for (const auto kind : {peer_change::arrived, peer_change::ended, peer_change::silent, peer_change::recovered}) {
        const peer_event event{kind, 0xFEDC'BA98'7654'3210U};
        const rill::buffer bytes = rill::to_message(event);
        CHECK(bytes.size() == 16);
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
            CHECK(rill::read_peer_event(message{bytes, cut}) == event);
    }
}

TEST_CASE("any other bytes are refused") {
    const rill::buffer good = rill::to_message({peer_change::ended, 7});
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK(is_refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}));
    for (std::size_t at = 0; at < 8; ++at)
        for (int bit = 0; bit < 8; ++bit) {
            rill::buffer bad = good;
            bad[at] ^= static_cast<std::byte>(1 << bit);
            const bool is_another_kind = at == 4 && (bit == 0 || bit == 1) && bad[4] != std::byte{0};
            CHECK(is_refused(bad) != is_another_kind);
        }
    rill::buffer longer = good;
    longer.push_back({});
    CHECK(is_refused(longer));
}
