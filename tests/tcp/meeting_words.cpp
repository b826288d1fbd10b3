#include <rill/core/error.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using options = std::array<meeting_word::option, 2>;

const options own{{{"first", 1}, {"second", 2}}};
const roster_entry zero{.rank = 0, .incarnation = 5, .host = "a", .addresses = {{.port = 4}}};
const roster_entry one{.rank = 1, .incarnation = 3, .host = "b", .addresses = {{.is_v6 = true, .port = 4}}};

/// Reads a word in pieces of `piece` bytes; `behind` more follow it.
meeting_reader read(std::vector<std::byte> word, rank_t self, std::size_t piece = 7, std::size_t behind = 0) {
    meeting_reader words(2, self, 1 - self);
    word.resize(word.size() + behind);
    std::size_t at = 0;
    while (!words.is_whole() && at < word.size()) {
        const byte_span room = words.room();
        const std::size_t count = std::min({piece, room.size(), word.size() - at});
        std::copy_n(word.begin() + static_cast<std::ptrdiff_t>(at), count, room.begin());
        words.arrived(count);
        at += count;
    }
    CHECK(words.room().empty() == words.is_whole());
    CHECK(at == word.size() - behind);
    return words;
}

abort_notice no_because(rank_t culprit) {
    return {.context = every_context, .kind = failure::mismatch, .culprit = culprit, .reason = "no"};
}

}  // namespace

TEST_CASE("words of a meeting are read as they were said, in pieces of any size, and no byte behind them") {
    for (const std::size_t piece : {1U, 8U, 1000U}) {
        const char* differs = "";
        CHECK(read(meeting_word::of_entry(own, one), 0, piece, 3).entry(own, 3, differs) == one);
        CHECK(differs == nullptr);
        CHECK(read(meeting_word::of_roster(std::array{zero, one}), 1, piece, 3).roster() == std::vector{zero, one});
        for (const rank_t culprit : {0, 1, no_rank}) {
            const abort_notice why = no_because(culprit);
            CHECK(read(meeting_word::of_refusal(why), 1, piece, 3).refusal() == why);
        }
    }
    const abort_notice long_one{.kind = failure::timeout, .reason = std::string(10'000, 'x')};
    CHECK(read(meeting_word::of_refusal(long_one), 1, 1000).refusal().reason.size() == meeting_word::most_text);
}

TEST_CASE("the first option that differs is named") {
    const char* differs = nullptr;
    read(meeting_word::of_entry(options{{{"", 7}, {"", 8}}}, one), 0).entry(own, 3, differs);
    CHECK(std::string(differs) == "first");
    read(meeting_word::of_entry(options{{{"", 1}, {"", 8}}}, one), 0).entry(own, 3, differs);
    CHECK(std::string(differs) == "second");
}

TEST_CASE("words that a rank may not tell are refused, and the rank is named") {
    const auto refuses = [](auto&& act, const char* text) {
        CHECK_THROWS_WITH_AS(act(), doctest::Contains(text), protocol_error);
    };
    const char* differs = nullptr;
    refuses(
        [] {
            read(meeting_word::of_roster(std::array{zero, one}), 0);
        },
        "rank 1 sent rank 0 a word that none may tell");
    refuses([] { read(meeting_word::of_entry(own, one), 1); }, "rank 0 sent rank 1 a word that none may tell");
    refuses([] { read(std::vector<std::byte>(8, std::byte{9}), 0); }, "a word that none may tell");
    refuses([&] { read(meeting_word::of_entry(own, zero), 0).entry(own, 5, differs); }, "the entry of another rank");
    refuses([&] { read(meeting_word::of_entry(own, one), 0).entry(own, 4, differs); }, "the entry of another rank");
    refuses([] { read(meeting_word::of_roster(std::array{zero}), 1).roster(); }, "a roster without all ranks");
    for (const rank_t culprit : {-2, 100})
        refuses([&] { read(meeting_word::of_refusal(no_because(culprit)), 1).refusal(); },
                "a culprit that the job has not");
    refuses(
        [] {
            read({std::byte{3}, {}, {}, {}, std::byte{4}, {}, {}, {}, {}, {}, {}, {}}, 1).refusal();
        },
        "a refusal that is cut off");
    std::vector<std::byte> refusal = meeting_word::of_refusal(no_because(0));
    refusal[8] = std::byte{200};
    refuses([&] { read(refusal, 1).refusal(); }, "a failure of an unknown kind");
    std::vector<std::byte> endless = meeting_word::of_entry(own, one);
    endless[7] = std::byte{0x7f};
    refuses([&] { read(endless, 0); }, "a word that none may tell");
}
