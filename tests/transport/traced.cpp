#include <rill/testing/transport_laws.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using rill::deadline;
using rill::trace_event;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};
constexpr std::size_t mailbox_bytes = 4096;

/// Runs a body on transports that record into logs of `capacity` events.
auto recorded(auto run, std::size_t capacity) {
    return [run, capacity](int ranks, auto&& body) {
        run(ranks, [&](auto& net) {
            rill::trace_log log(capacity);
            rill::traced traced{net, log};
            body(traced);
        });
    };
}

void check_laws(auto&& runner) {
    int laws = 0;
    rill::testing::for_each_law(
        runner, {.mailbox_bytes = mailbox_bytes, .large_bytes = 100'000, .largest_bytes = 1'000'000, .most_ranks = 16},
        [&](const char* name, const rill::testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}

/// Skips one JSON value; false where there is none.
bool skip_value(std::string_view& text);

void skip_space(std::string_view& text) {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n')) text.remove_prefix(1);
}
bool skip_char(std::string_view& text, char c) {
    skip_space(text);
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
}
bool skip_string(std::string_view& text) {
    if (!skip_char(text, '"')) return false;
    while (!text.empty() && text[0] != '"') {
        if (static_cast<unsigned char>(text[0]) < 0x20) return false;
        text.remove_prefix(text[0] == '\\' && text.size() > 1 ? 2 : 1);
    }
    return skip_char(text, '"');
}
bool skip_list(std::string_view& text, char close, bool keys) {
    if (skip_char(text, close)) return true;
    do {
        if (keys && !(skip_string(text) && skip_char(text, ':'))) return false;
        if (!skip_value(text)) return false;
    } while (skip_char(text, ','));
    return skip_char(text, close);
}
bool skip_value(std::string_view& text) {
    if (skip_char(text, '{')) return skip_list(text, '}', true);
    if (skip_char(text, '[')) return skip_list(text, ']', false);
    if (!text.empty() && text[0] == '"') return skip_string(text);
    const std::size_t length = std::min(text.find_first_not_of("-0123456789."), text.size());
    text.remove_prefix(length);
    return length > 0;
}
bool is_json(std::string_view text) {
    const bool whole = skip_value(text);
    skip_space(text);
    return whole && text.empty();
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

static_assert(rill::ConcurrentTransport<rill::traced<rill::simulated::endpoint>>);
static_assert(rill::ConcurrentTransport<rill::traced<rill::subgroup<rill::in_process::endpoint>>>);

TEST_CASE("a traced transport keeps the laws of a transport") {
    SUBCASE("simulated, with a log too small") {
        check_laws(recorded(
            [](int ranks, auto&& body) { rill::simulated::run(ranks, {.mailbox_bytes = mailbox_bytes}, body); }, 10));
    }
    SUBCASE("threads") {
        check_laws(recorded(
            [](int ranks, auto&& body) { rill::in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); },
            10000));
    }
}

TEST_CASE("posts, receives, waits and spans are recorded with their times and peers") {
    std::vector<rill::trace_log> logs(2);
    rill::simulated::run(2, {.latency = rill::nanoseconds(100), .bandwidth = 0}, [&](auto& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        const auto all = net.span("all");
        if (net.rank() == 0) {
            const rill::buffer lent(30);
            auto sent = net.post(1, on, rill::byte_view(lent));
            sent.wait(deadline::never);
        } else {
            const auto message = net.receive(0, on, deadline::never);
            net.sleep_until({150});
        }
    });
    const auto check = [](const trace_event& e, const char* name, trace_event::what kind, std::int64_t begin,
                          std::int64_t end, rill::rank_t peer, std::uint64_t bytes) {
        CHECK(std::string(e.name) == name);
        CHECK(e.kind == kind);
        CHECK(e.begin.ns == begin);
        CHECK(e.end.ns == end);
        CHECK(e.peer == peer);
        CHECK(e.bytes == bytes);
    };
    using enum trace_event::what;
    REQUIRE(logs[0].events().size() == 3);
    check(logs[0].events()[0], "post", post, 0, 0, 1, 30);
    check(logs[0].events()[1], "wait for send", wait, 0, 150, 1, 0);
    check(logs[0].events()[2], "all", span, 0, 150, rill::no_rank, 0);
    REQUIRE(logs[1].events().size() == 3);
    check(logs[1].events()[0], "receive", receive, 0, 100, 0, 30);
    check(logs[1].events()[1], "sleep", span, 100, 150, rill::no_rank, 0);
    check(logs[1].events()[2], "all", span, 0, 150, rill::no_rank, 0);
    CHECK(logs[1].rank() == 1);
}

TEST_CASE("what came to nothing is recorded where it took time") {
    rill::trace_log log;
    rill::simulated::run(1, {.mailbox_bytes = 10}, [&](auto& inner) {
        rill::traced net{inner, log};
        CHECK(!net.receive(0, on, net.now() + rill::nanoseconds(50)));
        CHECK(net.post(0, on, rill::buffer(10)));
        CHECK(!net.post(0, on, rill::buffer(1), net.now() + rill::nanoseconds(20)));
    });
    REQUIRE(log.events().size() == 3);
    CHECK(std::string(log.events()[0].name) == "receive nothing");
    CHECK(log.events()[0].kind == trace_event::what::wait);
    CHECK(std::string(log.events()[2].name) == "post refused");
    CHECK(log.events()[2].end.ns == 70);
}

TEST_CASE("a full log drops and counts") {
    rill::trace_log log(2);
    for (int i = 0; i < 5; ++i) log.record({.bytes = static_cast<std::uint64_t>(i)});
    CHECK(log.events().size() == 2);
    CHECK(log.events()[1].bytes == 1);
    CHECK(log.dropped() == 3);
    log.clear();
    CHECK(log.events().empty());
    CHECK(log.dropped() == 0);
}

TEST_CASE("a trace is JSON with a process per rank and an arrow per message") {
    std::vector<rill::trace_log> logs(3);
    rill::simulated::run(3, {.latency = rill::nanoseconds(1500), .bandwidth = 0}, [&](auto& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        const auto named = net.span("a \"quoted\" \\ name\n");
        for (std::uint32_t tag = 0; tag < 2; ++tag) {
            net.post((net.rank() + 1) % 3, {on.context, tag}, rill::buffer(8));
            net.receive((net.rank() + 2) % 3, {on.context, tag}, deadline::never);
        }
    });
    std::string text;
    rill::write_trace(text, logs);
    INFO(text);
    CHECK(is_json(text));
    CHECK(count(text, "\"process_name\"") == 3);
    CHECK(count(text, "\"ph\":\"X\"") == 15);
    CHECK(count(text, "\"ph\":\"s\"") == 6);
    CHECK(count(text, "\"ph\":\"f\"") == 6);
    CHECK(
        count(text,
              "{\"ph\":\"X\",\"pid\":2,\"tid\":0,\"ts\":1.500,\"dur\":1.500,\"name\":\"receive\",\"args\":{\"peer\":1,"
              "\"bytes\":8,\"context\":\"3\",\"tag\":1}}") == 1);
    CHECK(count(text,
                "{\"ph\":\"s\",\"pid\":0,\"tid\":0,\"ts\":0.000,\"name\":\"message\",\"cat\":\"message\",\"id\":1}") ==
          1);
    CHECK(count(text,
                "{\"ph\":\"f\",\"pid\":1,\"tid\":0,\"ts\":1.499,\"name\":\"message\",\"cat\":\"message\",\"id\":1,"
                "\"bp\":\"e\"}") == 1);
    CHECK(count(text, "\"a \\\"quoted\\\" \\\\ name\\u000a\"") == 3);

    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    rill::write_trace(file, logs);
    CHECK(std::ftell(file) == static_cast<long>(text.size()));
    std::fclose(file);
    CHECK(is_json([] {
        std::string nothing;
        rill::write_trace(nothing, {});
        return nothing;
    }()));
}

TEST_CASE("spans of activities that overlap are on tracks of their own") {
    std::vector<rill::trace_log> logs(1);
    rill::simulated::run(1, {}, [&](auto& inner) {
        rill::traced net{inner, logs[0]};
        const auto outer = net.span("outer");
        auto other = net.spawn([&] {
            const auto late = net.span("late");
            net.sleep_until({300});
        });
        {
            const auto early = net.span("early");
            net.sleep_until({100});
        }
        {
            const auto middle = net.span("middle");
            net.sleep_until({400});
        }
        other.join();
    });
    std::string text;
    rill::write_trace(text, logs);
    CHECK(is_json(text));
    const auto track = [&](const char* name) {
        const std::size_t at = text.find("\"name\":\"" + std::string(name));
        const std::size_t tid = text.rfind("\"tid\":", at);
        return text[tid + 6];
    };
    CHECK(track("outer") == '0');
    CHECK(track("late") == '0');
    CHECK(track("early") == '0');
    CHECK(track("middle") == '1');
}

TEST_CASE("a channel from which only the latest message is taken has no arrows") {
    std::vector<rill::trace_log> logs(1);
    rill::simulated::run(1, {}, [&](auto& inner) {
        rill::traced net{inner, logs[0]};
        const rill::rank_t self = 0;
        net.post(0, on, rill::buffer(1));
        net.post(0, on, rill::buffer(2));
        CHECK(net.receive_latest({&self, 1}, on, deadline::never)->pieces().size_bytes() == 2);
    });
    std::string text;
    rill::write_trace(text, logs);
    CHECK(count(text, "\"ph\":\"X\"") == 3);
    CHECK(count(text, "\"ph\":\"s\"") == 0);
}
