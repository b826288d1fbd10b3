#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/tcp_roster.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using bytes = std::vector<std::byte>;

roster_address v4(std::uint16_t port) {
    return {.bytes = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}}, .port = port};
}
roster_address v6(std::uint16_t port) {
    roster_address made{.is_v6 = true, .scope = 0x01020304, .port = port};
    for (std::size_t i = 0; i < 16; ++i) made.bytes[i] = static_cast<std::byte>(0xf0 + i);
    return made;
}
std::vector<roster_entry> three() {
    return {{.rank = 0, .incarnation = 0xfedcba9876543210, .host = "one", .addresses = {v4(7000)}},
            {.rank = 2, .incarnation = 1, .host = "two.example", .addresses = {v6(65535), v4(1), v4(2), v6(3)}},
            {.rank = 3, .incarnation = 2, .host = "one", .addresses = {v6(9)}}};
}
std::vector<roster_entry> decode(const bytes& raw, rank_t ranks = 4) { return decode_roster(raw, ranks, 1, 2); }

/// What the error says, or nothing.
std::string error_of(const bytes& raw, rank_t ranks = 4) {
    try {
        decode(raw, ranks);
    } catch (const protocol_error& wrong) {
        CHECK(wrong.culprit() == 2);
        return wrong.what();
    }
    return "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// A roster of one entry: count 0-3, rank 4-7, incarnation 8-15, length of the host 16, host 17, number of addresses
/// 18, family 19, address 20-23, port 24-25.
bytes one() {
    return encode_roster(
        std::vector<roster_entry>{{.rank = 1, .incarnation = 5, .host = "h", .addresses = {v4(0x1234)}}});
}
bytes with(std::size_t at, unsigned value) {
    bytes made = one();
    made[at] = static_cast<std::byte>(value);
    return made;
}

}  // namespace

TEST_CASE("a roster comes back as it was") {
    std::vector<roster_entry> all = three();
    CHECK(decode(encode_roster(all)) == all);
    CHECK(cards_of(all[1]) == 1);
    all[1].addresses[2].card = all[1].addresses[3].card = 1;
    CHECK(decode(encode_roster(all)) == all);
    CHECK(cards_of(all[1]) == 2);
    CHECK(decode(encode_roster({})).empty());
    roster_entry largest{.rank = 3, .incarnation = 1, .host = std::string(255, 'h'), .addresses = {}};
    largest.addresses.assign(16, v6(1));
    const std::vector<roster_entry> only{largest};
    CHECK(decode(encode_roster(only)) == only);
}

TEST_CASE("the bytes of a roster are fixed") {
    const bytes raw = one();
    const unsigned expected[] = {1, 0, 0, 0, 1,   0, 0, 0,   5, 0, 0, 0,    0,
                                 0, 0, 0, 1, 'h', 1, 4, 127, 0, 0, 1, 0x34, 0x12};
    REQUIRE(raw.size() == std::size(expected));
    for (std::size_t i = 0; i < raw.size(); ++i) CHECK(raw[i] == static_cast<std::byte>(expected[i]));
}

TEST_CASE("a roster that is cut at any byte, or goes on, is refused") {
    const bytes raw = encode_roster(three());
    for (std::size_t size = 0; size < raw.size(); ++size) {
        CAPTURE(size);
        CHECK(has(error_of(bytes(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(size))), "cut off"));
    }
    bytes longer = raw;
    longer.push_back({});
    CHECK(has(error_of(longer), "rank 2 sent rank 1 a roster with bytes behind its end"));
}

TEST_CASE("wrong counts and fields of a roster are refused by name") {
    CHECK(error_of(one()).empty());
    CHECK(has(error_of(with(0, 5)), "more ranks than the job has"));
    CHECK(has(error_of(with(3, 0xff)), "more ranks than the job has"));
    CHECK(has(error_of(with(0, 2)), "cut off"));
    CHECK(has(error_of(with(0, 0)), "bytes behind its end"));
    CHECK(has(error_of(with(4, 4)), "a rank that the job has not"));
    CHECK(has(error_of(with(7, 0x80)), "a rank that the job has not"));
    CHECK(has(error_of(one(), 1), "a rank that the job has not"));
    CHECK(has(error_of(with(8, 0)), "an incarnation of 0"));
    CHECK(has(error_of(with(16, 255)), "cut off"));
    CHECK(has(error_of(with(17, '\n')), "a host that is no plain text"));
    CHECK(has(error_of(with(17, 0xc3)), "a host that is no plain text"));
    CHECK(has(error_of(with(18, 255)), "a wrong number of addresses"));
    CHECK(has(error_of(with(19, 5)), "an unknown family"));
    CHECK(has(error_of(with(19, 6)), "cut off"));
    bytes no_port = with(24, 0);
    no_port[25] = {};
    CHECK(has(error_of(no_port), "a port of 0"));
    CHECK(has(error_of(with(19, 0x14)), "whose network cards do not ascend"));
    bytes cards = one();
    cards[18] = std::byte{2};
    for (std::size_t at = 19; at < 26; ++at) cards.push_back(cards[at]);
    CHECK(error_of(cards).empty());
    cards[26] = std::byte{0x14};
    CHECK(error_of(cards).empty());
    cards[26] = std::byte{0x24};
    CHECK(has(error_of(cards), "whose network cards do not ascend"));

    bytes no_host = one();
    no_host[16] = {};
    no_host.erase(no_host.begin() + 17);
    no_host.push_back({});
    CHECK_FALSE(error_of(no_host).empty());
    bytes many = one();
    many[18] = std::byte{17};
    for (int i = 1; i < 17; ++i)
        for (std::size_t at = 19; at < 26; ++at) many.push_back(many[at]);
    CHECK(has(error_of(many), "a wrong number of addresses"));

    bytes twice = one();
    const bytes again(twice.begin() + 4, twice.end());
    twice.insert(twice.end(), again.begin(), again.end());
    twice[0] = std::byte{2};
    CHECK(has(error_of(twice), "whose ranks do not ascend"));
    twice[4] = {};
    CHECK(error_of(twice).empty());
}

TEST_CASE("changed bytes are a roster or an error") {
    const bytes raw = encode_roster(three());
    for (std::uint64_t number = 0; number < 5000; ++number) {
        random_sequence random(random_key{number});
        bytes changed = raw;
        for (std::size_t i = 0; i < 1 + number % 3; ++i)
            changed[random.below(changed.size())] = static_cast<std::byte>(random.below(256));
        if (error_of(changed).empty()) {
            CAPTURE(number);
            CHECK(encode_roster(decode(changed)) == changed);
        }
    }
}

TEST_CASE("a roster that cannot be told is refused where it is made") {
    const auto refused = [](auto change) {
        std::vector<roster_entry> roster = three();
        change(roster);
        CHECK_THROWS_AS(encode_roster(roster), contract_violation);
    };
    refused([](auto& roster) { roster[1].rank = 0; });
    refused([](auto& roster) { roster[0].rank = -1; });
    refused([](auto& roster) { roster[1].incarnation = 0; });
    refused([](auto& roster) { roster[1].host.clear(); });
    refused([](auto& roster) { roster[1].host.assign(256, 'h'); });
    refused([](auto& roster) { roster[1].host = "a b"; });
    refused([](auto& roster) { roster[1].addresses.clear(); });
    refused([](auto& roster) { roster[1].addresses.assign(17, v4(1)); });
    refused([](auto& roster) { roster[1].addresses[0].port = 0; });
}
