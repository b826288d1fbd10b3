#include <rill/collective/all_reduce.hpp>
#include <rill/transport/traced.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

TEST_CASE("request: a trace shows operations that overlap, each on a track of its own") {
    constexpr std::size_t count = 3;
    std::vector<rill::trace_log> logs(2);
    rill::simulated::run(2, {.latency = rill::microseconds(50)}, [&](auto& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        rill::group workers{net, rill::topology::ring{}};
        std::vector<std::vector<float>> data(count, std::vector<float>(1000, 1));
        std::vector<rill::request> requests;
        for (auto& each : data) requests.push_back(rill::start_all_reduce(workers, each, each));
        for (auto& each : requests) each.get();
    });
    for (const rill::trace_log& log : logs) {
        const std::vector<int> tracks = rill::detail::tracks_of(log.events());
        std::vector<rill::trace_event> operations;
        std::set<int> of_operations;
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            if (std::string(log.events()[i].name) != "all_reduce") continue;
            operations.push_back(log.events()[i]);
            of_operations.insert(tracks[i]);
        }
        REQUIRE(operations.size() == count);
        CHECK(of_operations.size() == count);
        CHECK(of_operations.count(0) == 0);  // the caller's own track
        for (const auto& a : operations)
            for (const auto& b : operations) CHECK(a.begin < b.end);
        // Events of an operation are on its track.
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            const rill::trace_event& e = log.events()[i];
            if (e.kind == rill::trace_event::what::receive && e.on.tag != 0) CHECK(of_operations.count(tracks[i]) == 1);
        }
    }
}
