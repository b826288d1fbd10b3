#include <rill/testing/coverage.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace testing = rill::testing;
using rill::deadline;
using rill::milliseconds;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};

/// Each rank sends its number to the next one; a rank that receives nothing blames its neighbour.
void tell_the_next(rill::simulated::endpoint& net, testing::rank_record& mine, rill::duration timeout,
                   bool names_link) {
    const int next = (net.rank() + 1) % net.size(), last = (net.rank() + net.size() - 1) % net.size();
    mine.attempt({.name = "tell"}, [&] {
        net.post(next, on, rill::buffer(1, static_cast<std::byte>(net.rank())));
        const auto heard = net.receive(last, on, timeout == rill::duration{} ? deadline::never : net.now() + timeout);
        if (!heard)
            rill::throw_error({.kind = rill::failure::timeout,
                               .culprit = last,
                               .other = names_link ? net.rank() : rill::no_rank,
                               .reason = "rank " + std::to_string(last) + " said nothing"});
        return testing::call_result{.is_exact = std::to_integer<int>(heard->pieces()[0][0]) == last};
    });
}
const auto forgiving = [](auto& net, const testing::protocol_case&, testing::rank_record& mine) {
    tell_the_next(net, mine, rill::seconds(20), true);
};
const auto endless = [](auto& net, const testing::protocol_case&, testing::rank_record& mine) {
    tell_the_next(net, mine, {}, true);
};

/// Sums at rank 0, which accepts any message: a message that arrives twice is counted twice, and another one is missed.
const auto gullible = [](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
    std::vector<rill::rank_t> others;
    for (int r = 1; r < net.size(); ++r) others.push_back(r);
    mine.attempt({.name = "sum"}, [&]() -> testing::call_result {
        if (net.rank() != 0) return {net.post(0, on, rill::buffer(of.size + 1, static_cast<std::byte>(net.rank())))};
        int sum = 0;
        for (int i = 1; i < net.size(); ++i) {
            const auto got = net.receive(others, on, net.now() + rill::seconds(20));
            if (got) sum += std::to_integer<int>(got->pieces()[0][0]);
        }
        return {.is_exact = sum == net.size() * (net.size() - 1) / 2};
    });
};

/// The text between two others.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
    const std::size_t at = text.find(before);
    if (at == std::string::npos) return "";
    const std::size_t first = at + before.size();
    return text.substr(first, text.find(after, first) - first);
}

/// The report of the first failing run among runs with faults of `kind`.
template <class Protocol>
std::string first_failure(testing::protocol_test& test, testing::fault_kind kind, const Protocol& protocol) {
    for (std::uint64_t seed = 0; seed < 200; ++seed)
        if (std::string report = test.run(kind, seed, protocol); !report.empty()) return report;
    return "";
}

struct replaying {
    explicit replaying(const std::string& what) { setenv(testing::protocol_test::replay_variable, what.c_str(), 1); }
    ~replaying() { unsetenv(testing::protocol_test::replay_variable); }
};

}  // namespace

TEST_CASE("a correct protocol is not blamed") {
    testing::protocol_test test("forgiving", {.most_ranks = 6});
    for (const testing::fault_kind kind :
         {testing::fault_kind::none, testing::fault_kind::delay, testing::fault_kind::slow, testing::fault_kind::kill})
        CHECK(first_failure(test, kind, forgiving) == "");
}

TEST_CASE("a broken protocol is found, its case is minimised, and the printed line replays it") {
    testing::protocol_test test("gullible");
    const std::string report = first_failure(test, testing::fault_kind::duplicate, gullible);
    INFO(report);
    CHECK(report.find("gave a wrong result") != std::string::npos);
    const std::string simplest = between(report, "simplest: gullible: ", "\n");
    const testing::protocol_case minimal = testing::parse_protocol_case(simplest);
    CHECK(minimal.ranks == 3);  // with two ranks no message could be missed
    CHECK(minimal.size == 0);
    CHECK(minimal.plain);
    REQUIRE(minimal.faults.faults.size() == 1);
    CHECK(minimal.faults.faults[0] == rill::faults::duplicate(1));

    const replaying again(between(report, "RILL_REPLAY='", "'"));
    testing::protocol_test other("another"), same("gullible");
    CHECK(other.run(testing::fault_kind::kill, 1, endless) == "");
    const std::string replayed = same.run(testing::fault_kind::none, 0, gullible);
    CHECK(replayed == between(report, "simplest: ", "  replay"));
    CHECK(same.run(testing::fault_kind::none, 0, gullible) == "");  // a single run
}

TEST_CASE("a protocol that waits for ever is found as a deadlock or by the bound on virtual time") {
    testing::protocol_test test("endless");
    const std::string report = first_failure(test, testing::fault_kind::loss, endless);
    CHECK(report.find("deadlock at ") != std::string::npos);
    CHECK(report.find("simplest: endless: run ") != std::string::npos);
    CHECK(testing::parse_protocol_case(between(report, "simplest: endless: ", "\n")).ranks == 2);

    testing::protocol_test restless("restless", {.longest = rill::seconds(50)});
    const auto polls = [](auto& net, const testing::protocol_case&, testing::rank_record&) {
        while (!net.receive(0, on, net.now() + milliseconds(500))) continue;
    };
    CHECK(restless.run(testing::fault_kind::none, 1, polls).find("no end after 50000000000 ns: rank ") !=
          std::string::npos);
}

TEST_CASE("an error must name the fault, and must be the same on all ranks") {
    testing::protocol_test test("half a name");
    const auto names_rank = [](auto& net, const testing::protocol_case&, testing::rank_record& mine) {
        tell_the_next(net, mine, rill::seconds(20), false);
    };
    CHECK(first_failure(test, testing::fault_kind::cut, names_rank)
              .find("names neither a rank that died nor a link that failed") != std::string::npos);
    const auto impatient = [](auto& net, const testing::protocol_case&, testing::rank_record& mine) {
        tell_the_next(net, mine, rill::nanoseconds(1), true);
    };
    CHECK(first_failure(test, testing::fault_kind::none, impatient).find("failed though nothing went wrong") !=
          std::string::npos);
    testing::protocol_test agreed("one verdict", {.control = rill::simulated::control_plane::ideal});
    CHECK(first_failure(agreed, testing::fault_kind::loss, forgiving).find("blames another than") != std::string::npos);
}

TEST_CASE("exact_or_named_fault: what calls must have in common") {
    using end = testing::call_record::end;
    testing::run_record seen;
    seen.ranks.resize(2);
    seen.report.ranks.resize(2);
    seen.report.links = {{.source = 0, .receiver = 1, .lost = 1}};
    for (auto& each : seen.ranks) {
        each.has_ended = true;
        each.calls = {{.name = "a", .step = 0, .came = end::exact, .bits = 7}, {.name = "b", .step = 1}};
    }
    const auto verdict = [&] { return testing::exact_or_named_fault({}, seen); };
    CHECK(verdict() == "");
    seen.ranks[1].calls[0].bits = 8;
    CHECK(verdict() == "rank 1: a gave other bits than elsewhere");
    seen.ranks[1].calls[0] = {.name = "a", .came = end::failed, .culprit = 0, .other = 1};
    CHECK(verdict() == "");
    seen.ranks[0].calls[1].came = end::exact;
    CHECK(verdict() == "rank 0: b came through after an earlier call of the group had failed: ");
    seen.ranks[0].calls[1].group = 1;
    CHECK(verdict() == "");
    seen.ranks[1].calls[0].is_spared = true;
    CHECK(verdict() == "rank 1: a failed though no fault can reach it");
    seen.ranks[0].complain("an input has changed");
    CHECK(verdict() == "rank 0: an input has changed");
    seen.ended_by = "something else";
    CHECK(verdict() == "something else");
}

TEST_CASE("cases are drawn from their seed, and are read as they are printed") {
    std::set<std::string> all;
    std::set<int> ranks;
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            const testing::protocol_case drawn = testing::draw_case(kind, seed);
            CHECK(drawn == testing::draw_case(kind, seed));
            CHECK(testing::parse_protocol_case(to_string(drawn)) == drawn);
            CHECK(drawn.faults.faults.empty() == (kind == testing::fault_kind::none));
            all.insert(to_string(drawn));
            ranks.insert(drawn.ranks);
        }
    CHECK(all.size() == 550);
    CHECK(ranks.size() == 15);
    for (const char* wrong : {"", "run 1", "run x ranks 2 size 3:", "run 1 ranks 2 size 3", "run 1 ranks 0 size 1: "})
        CHECK_THROWS_AS(testing::parse_protocol_case(wrong), std::runtime_error);
}

TEST_CASE("the same case gives the same run") {
    const testing::protocol_case of = testing::draw_case(testing::fault_kind::delay, 5);
    const auto once = testing::play(of, forgiving), again = testing::play(of, forgiving);
    CHECK(once.report.messages > 0);
    CHECK(once.report == again.report);
}

TEST_CASE("coverage counts cells, sums tables, and names cells without a run") {
    testing::coverage seen({{"call", {"sum", "max"}}, {"fault", {"none", "kill"}}, {"ranks", {"2", "3"}}});
    seen.count({0, 1, 0}, true);
    seen.count({0, 1, 1}, false);
    seen.count({1, 0, 1}, false);
    CHECK(seen.runs() == 3);
    CHECK(seen.table(0, 1) ==
          "call \\ fault  none  kill\n"
          "sum              0   2/1\n"
          "max              1     0\n");
    CHECK(seen.never_run().find("call sum, fault none, ranks 2\n") == 0);
    for (std::size_t i = 0; i < 8; ++i) seen.count({i / 4, i / 2 % 2, i % 2}, false);
    CHECK(seen.never_run() == "");
}
