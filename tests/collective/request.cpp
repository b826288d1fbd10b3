#include <rill/collective/request.hpp>

#include <rill/collective/all_reduce.hpp>

#include "cases.hpp"
#include "jobs.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <deque>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace cases;

namespace {

/// Runs `body(group, fail)` on every rank of groups of 1 to 5, on both transports; returns what failed.
template <class Shape, class Body>
std::string on_groups(Shape shape, Body body, rill::group_options options = {}) {
    failures all;
    for (int ranks : {1, 2, 3, 5}) {
        const auto on_rank = [&](auto& net) {
            rill::group workers{net, shape, options};
            body(workers, [&](const std::string& what) {
                all.add("P=" + std::to_string(ranks) + " rank " + std::to_string(net.rank()) + ": " + what);
            });
        };
        rill::in_process::run(ranks, on_rank);
        rill::simulated::run(ranks, {.jitter = rill::microseconds(20)}, on_rank);
    }
    return all.text();
}

/// A permutation of `[0, n)` that differs from rank to rank.
std::vector<std::size_t> any_order(std::size_t n, rill::random_sequence& draw) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[draw.below(i)]);
    return order;
}

/// Starts up to eight operations at a time, waits for them in a random order and by random calls, and compares the
/// results with those of the blocking calls in another group.
template <class Group, class Fail>
void mix(Group& workers, Fail fail) {
    rill::group others{workers.net(), workers.shape()};
    rill::random_sequence same(rill::random_key{7}), own(rill::random_key{8}.derive(workers.rank()));
    for (std::size_t count = 1; count <= 8; ++count) {
        std::deque<job> started, called;
        std::vector<rill::request> requests;
        std::vector<rill::receipt> due;
        for (std::size_t i = 0; i < count; ++i) {
            const int kind = static_cast<int>(same.below(job_kinds));
            const std::size_t n = same.below(300);
            const int root = static_cast<int>(same.below(static_cast<std::uint64_t>(workers.size())));
            for (auto* jobs : {&started, &called})
                jobs->emplace_back(kind, n, root, workers.size(), workers.rank(), 100 * count + i);
            requests.push_back(started.back().start(workers));
        }
        for (auto& each : called) due.push_back(each.call(others));
        job between(0, 100, 0, workers.size(), workers.rank(), count), alone = between;
        between.call(workers);  // while the others are in flight
        alone.call(others);
        if (!(between == alone)) fail("another result between operations in flight");
        for (const std::size_t i : any_order(count, own)) {
            switch (own.below(4)) {
                case 0: requests[i].wait(); break;
                case 1:
                    while (!requests[i].wait_for(rill::microseconds(1))) {
                    }
                    break;
                case 2:
                    while (!requests[i].test()) {
                    }
                    break;
                default: break;
            }
            const rill::receipt done = requests[i].get();
            if (requests[i].is_valid()) fail("a request is valid after get");
            if (!(started[i] == called[i])) fail("another result than the blocking call's");
            if (done.operation_number != due[i].operation_number || done.contributors != due[i].contributors ||
                done.weight != due[i].weight || done.rounds != due[i].rounds || done.wire != due[i].wire)
                fail("another receipt than the blocking call's");
        }
    }
}

}  // namespace

TEST_CASE("request: several in flight, got in any order, give what the blocking calls give") {
    CHECK(on_groups(rill::topology::split_allgather{}, [](auto& workers, auto fail) { mix(workers, fail); }) == "");
    CHECK(on_groups(rill::topology::ring{}, [](auto& workers, auto fail) { mix(workers, fail); }) == "");
}

TEST_CASE("request: an operation goes on without its caller") {
    rill::simulated::run(4, {.latency = rill::microseconds(100)}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(1000, 1), more(1000, 1);
        auto request = rill::start_all_reduce(workers, data, data);
        CHECK(!request.test());
        net.sleep_until(net.now() + rill::seconds(1));  // computes
        const auto before = net.now();
        CHECK(request.test());
        const rill::receipt done = request.get();
        CHECK(net.now() == before);
        CHECK(done.elapsed < rill::milliseconds(1));

        // Two operations at once take the time of one where only latency costs time.
        auto first = rill::start_all_reduce(workers, data, data), second = rill::start_all_reduce(workers, more, more);
        CHECK(!second.wait_for(rill::nanoseconds(1)));
        first.get();
        second.get();
        CHECK(net.now() - before < done.elapsed + rill::microseconds(100));
    });
    rill::in_process::run(3, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(1000, 1);
        typename std::remove_reference_t<decltype(net)>::event through{net};
        auto request = rill::start(workers, [&](auto& lane) {
            const rill::receipt done = rill::all_reduce(lane, data, data);
            through.set();
            return done;
        });
        CHECK(through.wait(rill::deadline::never));
        CHECK(data[999] == 3);
        request.get();
    });
}

TEST_CASE("request: more operations than a group remembers, waited for in reverse order") {
    CHECK(on_groups(rill::topology::tree{}, [](auto& workers, auto fail) {
              constexpr std::size_t count = rill::calls_remembered + 10;
              std::vector<std::vector<int>> data(count, std::vector<int>(3, 1));
              std::vector<rill::request> requests;
              for (auto& each : data) requests.push_back(rill::start_all_reduce(workers, each, each));
              for (std::size_t i = count; i-- > 0;) {
                  if (requests[i].get().operation_number != i + 1) fail("another operation");
                  if (data[i] != std::vector<int>(3, workers.size())) fail("a wrong sum");
              }
          }) == "");
}
