#include <rill/aggregate/add.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/testing/protocol_test.hpp>

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

/// How many pushes each worker has begun: no model may hold more.
std::vector<std::uint64_t> begun;
/// How many ranks have made the replica, which takes all of them.
int made = 0;

/// A run of some pushes of each worker, 1 at the worker's three coordinates, which lie in different parts. Who is late
/// is given up. Exact if each push was told once, and the model holds those of this rank that counted, and of others no
/// more than they have pushed.
template <class Age>
testing::call_result some_pushes(rill::simulated::endpoint& net, const testing::protocol_case& of,
                                 const rill::server_options& options, Age age, testing::rank_record& mine) {
    const auto ranks = static_cast<std::size_t>(net.size()), self = static_cast<std::size_t>(net.rank());
    std::vector<double> model(3 * ranks), gradient = model;
    for (std::size_t part = 0; part < 3; ++part) gradient[part * ranks + self] = 1;
    rill::parameter_server replica{net, options, age, rill::aggregate::add{}, model};
    ++made;
    const std::uint64_t last = of.seed % 8;
    std::uint64_t told = 0, counted = 0;
    for (bool goes_on = true; goes_on;) {
        std::optional<rill::held_version> held;
        try {
            held = replica.pull(model);
        } catch (const rill::error& late) {
            if (std::string(late.what()).find("give_up") == std::string::npos) throw;
            if (mine.calls.size() > 40) throw;
            mine.calls.push_back({.name = "late",
                                  .came = testing::call_record::end::failed,
                                  .culprit = late.culprit(),
                                  .other = late.notice().other,
                                  .said = late.what()});
            replica.give_up(late.culprit());
            continue;
        }
        goes_on = held.has_value();
        if (goes_on && begun[self] == last)
            of.seed % 3 == 0 ? replica.end() : replica.retire();
        else if (goes_on) {
            net.compute(1);
            ++begun[self];
            replica.push(gradient, *held);
        }
    }
    while (const auto fate = replica.fate()) {
        ++told;
        counted += fate->what == rill::push_fate::outcome::counted ? 1 : 0;
    }
    bool is_exact = told == begun[self];
    for (std::size_t i = 0; i < model.size(); ++i) is_exact = is_exact && model[i] <= double(begun[i % ranks]);
    if (counted == told)
        for (std::size_t part = 0; part < 3; ++part)
            is_exact = is_exact && model[part * ranks + self] == double(counted);
    return {.is_exact = is_exact};
}

/// Who has died, or is at an end of a link that has lost or repeated something.
bool has_suffered(const testing::run_record& seen, rill::rank_t rank) {
    if (rank < 0) return false;
    if (seen.has_died(rank)) return true;
    for (const auto& link : seen.report.links)
        if (seen.has_failed(link) && (link.source == rank || link.receiver == rank)) return true;
    return false;
}

/// Each survivor has ended with an exact model, or by an error that names a rank that has suffered. Without a bound, a
/// worker that dies does no harm.
template <bool is_bounded>
std::string exact_or_named_rank(const rill::server_options& options, const testing::protocol_case& of,
                                const testing::run_record& seen) {
    using end = testing::call_record::end;
    if (!seen.ended_by.empty()) return seen.ended_by;
    bool only_workers_died = options.dedicated && !is_bounded && made == of.ranks;
    for (rill::rank_t rank = 0; rank < of.ranks; ++rank)
        if (seen.has_died(rank) && rank >= of.ranks - options.servers) only_workers_died = false;
    for (const auto& link : seen.report.links) only_workers_died = only_workers_died && !seen.has_failed(link);
    for (rill::rank_t rank = 0; rank < of.ranks; ++rank) {
        if (seen.has_died(rank)) continue;
        const auto told = [&](const testing::call_record& call) {
            return "rank " + std::to_string(rank) + ": " + call.name + ": " + call.said;
        };
        for (const auto& call : seen.ranks[static_cast<std::size_t>(rank)].calls) {
            if (call.came == end::wrong) return told(call) + "gave a wrong result";
            if (call.came != end::failed) continue;
            if (only_workers_died) return told(call) + " though only workers have died";
            if (!has_suffered(seen, call.culprit)) return told(call) + " names a rank that is well";
        }
    }
    return {};
}

/// RILL_SERVER_RUNS=1000000 explores further.
std::uint64_t runs_in_all() {
    const char* const asked = std::getenv("RILL_SERVER_RUNS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
#ifdef RILL_TEST_SANITIZED
    return 400;
#else
    return 10'000;
#endif
}

template <bool is_bounded, class Age>
void explore(const char* name, Age age, int servers, bool dedicated) {
    testing::protocol_test test(name, {.most_ranks = 6});
    const auto options_of = [=](const testing::protocol_case& of) {
        const int most = dedicated ? of.ranks - 1 : of.ranks;
        return rill::server_options{.servers = servers < most ? servers : most,
                                    .dedicated = dedicated,
                                    .timeout = rill::seconds(10),
                                    .patience = rill::seconds(100)};
    };
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        if (net.rank() == 0) made = 0;
        if (net.rank() == 0) begun.assign(static_cast<std::size_t>(net.size()), 0);
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "pushes"}, [&] { return some_pushes(net, of, options_of(of), age, mine); });
    };
    const auto check = [&](const testing::protocol_case& of, const testing::run_record& seen) {
        return exact_or_named_rank<is_bounded>(options_of(of), of, seen);
    };
    const std::uint64_t seeds = runs_in_all() / (6 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const std::string report = test.run(kind, seed, on_one_rank, check);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

}  // namespace

TEST_CASE("parameter_server under faults: without a bound it is exact or names who has suffered") {
    explore<false>("bap on one", rill::straggler::unbounded{}, 1, true);
    explore<false>("bap on two", rill::straggler::unbounded{}, 2, true);
    explore<false>("bap on all", rill::straggler::unbounded{}, 6, false);
}

TEST_CASE("parameter_server under faults: under a bound it is exact or names who has suffered") {
    explore<true>("ssp on one", rill::straggler::bounded{2}, 1, true);
    explore<true>("ssp on two", rill::straggler::bounded{1}, 2, true);
    explore<true>("ssp on all", rill::straggler::bounded{2}, 6, false);
}
