#include <rill/transport/simulated.hpp>
#include <rill/transport/traced.hpp>
#include <rill/transport/write_trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using rill::deadline;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};

/// Skips one JSON value; returns false if there is none.
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

/// Records two spans of one activity that overlap without nesting.
template <class Net>
void log_crossing(Net& net) {
    using guard = decltype(net.span(""));
    net.sleep_until({200});
    std::unique_ptr<guard> first(new guard(net.span("first")));
    net.sleep_until({250});
    const auto crossing = net.span("crossing");
    net.sleep_until({300});
    first.reset();
    net.sleep_until({400});
}

}  // namespace

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

TEST_CASE("each activity has its own track, and so has each of its overlapping spans") {
    std::vector<rill::trace_log> logs(1);
    rill::simulated::run(1, {}, [&](auto& inner) {
        rill::traced net{inner, logs[0]};
        const auto outer = net.span("outer");
        auto other = net.spawn([&] {
            const auto inside = net.span("inside");  // within `outer` if both were one activity
            net.sleep_until({300});
        });
        {
            const auto early = net.span("early");
            net.sleep_until({100});
        }
        log_crossing(net);
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
    CHECK(track("early") == '0');
    CHECK(track("first") == '0');
    CHECK(track("crossing") == '1');
    CHECK(track("inside") == '2');
}

TEST_CASE("a channel that is read with receive_latest has no arrows") {
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
