#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_socket.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using state = tls::state;
using bytes = std::vector<std::byte>;

const tcp::key one_key = tcp::key::from_text("0123456789abcdefghijklmnop"),
               other_key = tcp::key::from_text("other 0123456789abcdefghijklmnop");

/// Bytes that differ from place to place.
bytes made(std::size_t count, unsigned seed) {
    bytes all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::byte>((i * 31 + (i >> 8) * 7 + seed) & 255);
    return all;
}
byte_view bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Carries what is outgoing at one end to the other, at most `most` bytes at once. Returns how many bytes; `said` gets
/// them.
std::size_t carry(tls& from, tls& to, std::size_t most = SIZE_MAX, bytes* said = nullptr) {
    std::size_t moved = 0;
    for (;;) {
        const byte_view out = from.outgoing();
        const byte_span room = to.room();
        const std::size_t count = std::min({out.size(), room.size(), most});
        if (count == 0) return moved;
        std::copy_n(out.begin(), count, room.begin());
        if (said != nullptr) said->insert(said->end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count));
        from.wrote(count);
        to.arrived(count);
        moved += count;
        if (to.now() == state::ready && to.holds()) return moved;
    }
}
void take_all(tls& from, bytes& to) {
    std::byte part[5000];
    while (const std::size_t count = from.take(part)) to.insert(to.end(), part, part + count);
}
std::size_t say(tls& to, byte_view what) { return to.say({&what, 1}); }

struct two_ends {
    tls_context a_with, b_with;
    tls a, b;

    explicit two_ends(const tcp::key& a_key = one_key, const tcp::key& b_key = one_key,
                      std::uint64_t most_by_key = tls::rekey_bytes)
        : a_with(a_key.tls_secret()),
          b_with(b_key.tls_secret()),
          a(a_with, true, most_by_key),
          b(b_with, false, most_by_key) {}
    void greet(std::size_t most = SIZE_MAX) {
        while (carry(a, b, most) + carry(b, a, most) != 0) {
        }
    }
};

}  // namespace

TEST_CASE("ends with one secret encrypt, and export a value that no other connection has") {
    two_ends first, second;
    CHECK(say(first.a, bytes_of("too early")) == 0);
    first.greet();
    second.greet();
    REQUIRE(first.a.now() == state::ready);
    REQUIRE(first.b.now() == state::ready);
    CHECK(first.a.exported() == first.b.exported());
    CHECK(first.a.exported() != second.a.exported());

    const byte_view pieces[] = {bytes_of("a secret "), bytes_of(""), bytes_of("of two ranks")};
    CHECK(first.a.say(pieces) == 21);
    bytes way, got;
    carry(first.a, first.b, SIZE_MAX, &way);
    take_all(first.b, got);
    CHECK(std::ranges::equal(got, bytes_of("a secret of two ranks")));
    CHECK(std::ranges::search(way, bytes_of("secret")).empty());
}

TEST_CASE("bytes that come one by one are taken all the same") {
    two_ends ends;
    ends.greet(1);
    REQUIRE(ends.a.now() == state::ready);
    REQUIRE(ends.b.now() == state::ready);
    const bytes said = made(300, 1);
    CHECK(say(ends.b, said) == said.size());
    bytes got;
    while (carry(ends.b, ends.a, 1) != 0) take_all(ends.a, got);
    CHECK(got == said);
}

TEST_CASE("1 MiB travels in both directions at once") {
    // With changes of the key: at least every 40,000 bytes.
    for (const std::uint64_t most_by_key : {tls::rekey_bytes, std::uint64_t{40'000}}) {
        two_ends ends(one_key, one_key, most_by_key);
        ends.greet();
        ends.a.trust();
        ends.b.trust();
        const bytes to_b = made(1 << 20, 1), to_a = made(1 << 20, 2);
        bytes at_b, at_a;
        std::size_t a_said = 0, b_said = 0, way = 0;
        const auto part_of = [](const bytes& all, std::size_t from, bytes& copy) {
            // Pieces of all sizes: heads and contents, whole records and more.
            static constexpr std::size_t sizes[] = {16, 1, 40'000, 16'384, 0, 16'368, 100'000};
            std::vector<byte_view> pieces;
            copy = all;
            for (const std::size_t size : sizes) {
                pieces.push_back(byte_view(copy).subspan(from, std::min(size, all.size() - from)));
                from += pieces.back().size();
            }
            return pieces;
        };
        while (at_b.size() < to_b.size() || at_a.size() < to_a.size()) {
            bytes copy;
            a_said += ends.a.say(part_of(to_b, a_said, copy));
            b_said += ends.b.say(part_of(to_a, b_said, copy));
            const std::size_t moved = carry(ends.a, ends.b, 7000) + carry(ends.b, ends.a, 9000);
            take_all(ends.a, at_a);
            take_all(ends.b, at_b);
            REQUIRE(moved != 0);
            way += moved;
        }
        CHECK(at_b == to_b);
        CHECK(at_a == to_a);
        CHECK(way < 2.01 * (1 << 20));
    }
}

TEST_CASE("last bytes that are more than is encrypted at once travel whole") {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
    const tls_context one(one_key.tls_secret()), other(one_key.tls_secret());
    const line from(rill::tcp::detail::socket(both[0]), std::make_unique<tls>(one, true));
    const line to(rill::tcp::detail::socket(both[1]), std::make_unique<tls>(other, false));
    std::byte part[5000];
    for (int i = 0; i < 4; ++i) {
        from.flush();
        CHECK(to.read(part) < 0);
        to.flush();
        CHECK(from.read(part) < 0);
    }
    from.encryption()->trust();
    to.encryption()->trust();
    const bytes all = made(150'000, 3);
    from.write_last(all);
    bytes seen;
    for (ssize_t got; (got = to.read(part)) > 0;) seen.insert(seen.end(), part, part + got);
    CHECK(seen == all);
}

TEST_CASE("ends with different secrets say nothing") {
    two_ends ends(one_key, other_key);
    ends.greet();
    for (tls* each : {&ends.a, &ends.b}) {
        CHECK(each->now() == state::failed);
        CHECK(each->has_other_secret());
        CHECK(say(*each, bytes_of("no")) == 0);
        CHECK(each->room().empty());
        std::byte any[8];
        CHECK(each->take(any) == 0);
    }
}

TEST_CASE("a changed byte ends the connection, and nothing of its record is taken") {
    for (const std::size_t at : {0U, 4U, 5U, 20U, 40U}) {
        CAPTURE(at);
        two_ends ends;
        ends.greet();
        ends.a.trust();
        ends.b.trust();
        CHECK(say(ends.a, made(100, 3)) == 100);
        const byte_view out = ends.a.outgoing();
        std::ranges::copy(out, ends.b.room().begin());
        ends.b.room()[at] ^= std::byte{1};
        ends.b.arrived(out.size());
        bytes got;
        take_all(ends.b, got);
        CHECK(got.empty());
        CHECK(ends.b.now() == state::failed);
    }
}

TEST_CASE("a record that is cut off is not taken") {
    two_ends ends;
    ends.greet();
    ends.a.trust();
    ends.b.trust();
    CHECK(say(ends.a, made(100, 4)) == 100);
    const byte_view out = ends.a.outgoing();
    std::copy(out.begin(), out.end() - 1, ends.b.room().begin());
    ends.b.arrived(out.size() - 1);
    bytes got;
    take_all(ends.b, got);
    CHECK(got.empty());
    CHECK(ends.b.now() == state::ready);
}

TEST_CASE("an end that hears no TLS takes what came as it is") {
    for (const bool dials : {true, false}) {
        const tls_context with(one_key.tls_secret());
        tls end(with, dials);
        const byte_view hello = bytes_of("rill, and more");
        std::ranges::copy(hello, end.room().begin());
        end.arrived(hello.size());
        CHECK(end.now() == state::clear);
        bytes got;
        take_all(end, got);
        CHECK(std::ranges::equal(got, hello));
        end.wrote(end.outgoing().size());
        CHECK(say(end, bytes_of("no")) == 2);
        CHECK(std::ranges::equal(end.outgoing(), bytes_of("no")));
    }
}

TEST_CASE("who has not proved who it is can say 2 KiB") {
    const tls_context with(one_key.tls_secret());
    tls end(with, false);
    std::size_t room = 0;
    for (const std::byte each : {std::byte{22}, std::byte{3}, std::byte{3}, std::byte{60}, std::byte{0}}) {
        end.room()[0] = each;
        end.arrived(1);
        ++room;
    }
    while (!end.room().empty()) {
        end.room()[0] = room == 5 ? std::byte{1} : std::byte{0};
        end.arrived(1);
        ++room;
        if (end.now() == state::failed) break;
    }
    CHECK(room <= tls::most_untrusted);
}

TEST_CASE("bytes that are no record are refused") {
    const tls_context with(one_key.tls_secret());
    tls end(with, false);
    const bytes wrong(200, std::byte{22});
    std::ranges::copy(wrong, end.room().begin());
    end.arrived(wrong.size());
    CHECK(end.now() == state::failed);
    CHECK_FALSE(end.has_other_secret());
}
