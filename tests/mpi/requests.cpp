// Non-blocking operations over MPI: their bits, their progress, and how they end.
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/start.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>

#include "../collective/cases.hpp"
#include "../collective/jobs.hpp"
#include "evidence.hpp"
#include "processes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using cases::job;

/// One job of each kind and size. All is the same on all ranks except for the values.
template <class Group>
std::deque<job> all_jobs(const Group& workers) {
    std::deque<job> jobs;
    for (const std::size_t n : {0U, 65U, 5000U})
        for (int kind = 0; kind < cases::job_kinds; ++kind)
            jobs.emplace_back(kind, n, workers.size() - 1, workers.size(), workers.rank(), n + 1);
    return jobs;
}

/// The bits of the results for element types and folds other than the sum of floats.
template <class T, class Group, class Fold>
void add_fold(Group& workers, const Fold& fold, evidence::record& seen) {
    const std::size_t n = 3000;
    std::vector<T> input(n), output(n);
    const rill::counter_rng random(rill::random_key{9}.derive(workers.rank()));
    for (std::size_t i = 0; i < n; ++i) input[i] = static_cast<T>(random.uniform(i) * 2000 - 1000);
    rill::start_all_reduce(workers, input, output, fold).get();
    seen.add(Fold::name, std::as_bytes(std::span(output)));
}
template <class Group>
std::vector<std::uint64_t> of_folds(Group& workers) {
    evidence::record seen;
    add_fold<double>(workers, rill::aggregate::max{}, seen);
    add_fold<std::int32_t>(workers, rill::aggregate::min{}, seen);
    add_fold<double>(workers, rill::aggregate::mean{}, seen);
    add_fold<std::int64_t>(workers, rill::aggregate::sum{}, seen);
    return seen.digests();
}

using digests = std::vector<std::uint64_t>;

/// The results of the blocking calls among threads of this process, by rank.
template <class Shape>
std::vector<digests> among_threads(const Shape& shape, int ranks) {
    std::vector<digests> each(static_cast<std::size_t>(ranks));
    rill::in_process::run(ranks, [&](auto& net) {
        rill::group workers{net, shape};
        digests& own = each[static_cast<std::size_t>(net.rank())];
        for (job& next : all_jobs(workers)) {
            next.call(workers);
            own.push_back(next.digest());
        }
        const digests folds = of_folds(workers);
        own.insert(own.end(), folds.begin(), folds.end());
    });
    return each;
}

/// Waits for an operation by one of several calls, chosen by `manner`.
void await(rill::request& one, std::size_t manner) {
    if (manner % 3 == 0) return;
    if (manner % 3 == 1)
        while (!one.test()) {
        }
    else
        while (!one.wait_for(rill::microseconds(100))) {
        }
}

/// Keeps eight operations in flight, and waits for them in reverse order.
template <class Group>
digests started_together(Group& workers) {
    constexpr std::size_t together = 8;
    std::deque<job> jobs = all_jobs(workers);
    for (std::size_t first = 0; first < jobs.size(); first += together) {
        std::vector<rill::request> requests;
        for (std::size_t i = first; i < std::min(first + together, jobs.size()); ++i)
            requests.push_back(jobs[i].start(workers));
        for (; !requests.empty(); requests.pop_back()) {
            await(requests.back(), requests.size());
            requests.back().get();
        }
    }
    digests own;
    for (const job& done : jobs) own.push_back(done.digest());
    const digests folds = of_folds(workers);
    own.insert(own.end(), folds.begin(), folds.end());
    return own;
}

template <class Shape>
void compare(const Shape& shape, const rill::mpi::options& chosen) {
    const int ranks = processes::count();
    const std::vector<digests> due = among_threads(shape, ranks);
    processes::run(
        ranks,
        [&](auto& net) {
            rill::group workers{net, shape};
            CHECK(started_together(workers) == due[static_cast<std::size_t>(net.rank())]);
        },
        chosen);
}

}  // namespace

TEST_CASE("requests: non-blocking operations give the bits of in_process") {
    compare(rill::topology::split_allgather{}, {});
    compare(rill::topology::ring{}, {.eager_bytes = 1024});
}

TEST_CASE("requests: the first messages leave at the start") {
    processes::run(processes::count(), [](auto& net) {
        if (net.size() == 1 || net.activities_run_alone()) return;
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(1000, 1);
        const auto before = net.counted().messages_sent;
        rill::request under_way = rill::start_all_reduce(workers, data, data);
        CHECK(net.counted().messages_sent > before);
        under_way.get();
        CHECK(data == std::vector<float>(1000, static_cast<float>(net.size())));
    });
}

TEST_CASE("requests: buckets make progress whenever a tensor becomes ready, at any thread level") {
    processes::run(processes::count(), [](auto& net) {
        if (net.size() == 1) return;
        // The last tensor is a bucket of its own; all others share a bucket that is complete only at the end.
        constexpr std::size_t others = 2000;
        std::vector<std::size_t> sizes(others, 1);
        sizes.push_back(others);
        const rill::bucket_plan plan = rill::fusion{.bytes = others * sizeof(float)}.bind(sizes, sizeof(float));
        REQUIRE(plan.buckets().size() == 2);
        std::vector<float> data(2 * others, 1);
        rill::group workers{net, rill::topology::split_allgather{}};
        rill::bucket_exchange exchange(workers, plan, [&](std::size_t i) {
            const rill::segment place = plan.buckets()[i].elements;
            return rill::start_all_reduce(workers, std::span(data).subspan(place.begin, place.size()),
                                          std::span(data).subspan(place.begin, place.size()));
        });
        const auto before = net.counted().messages_received;
        exchange.ready(others);
        for (std::size_t i = others; i-- > 1; exchange.ready(i))
            if (net.counted().messages_received == before) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        CHECK(net.counted().messages_received > before);
        exchange.ready(0);
        exchange.finish();
        CHECK(data == std::vector<float>(2 * others, static_cast<float>(net.size())));
    });
}

TEST_CASE("requests: a cancellation before the others begin ends all ranks, though messages have arrived") {
    const auto body = [](auto& net) {
        if (net.size() == 1) return;
        rill::group workers{net, rill::topology::recursive_doubling{}};
        std::vector<float> data(1000, 1);
        const auto culprit_of = [&] {
            try {
                rill::start_all_reduce(workers, data, data).get();
            } catch (const rill::peer_failure& e) {
                return e.culprit();
            }
            return rill::no_rank;
        };
        // The others do not enter the library before the cancellation: they wait outside of it.
        if (net.rank() == 1) {
            rill::request early = rill::start_all_reduce(workers, data, data);
            early.cancel();
            CHECK_THROWS_AS(early.get(), rill::peer_failure);
        }
        MPI_Barrier(processes::first(net.size()));
        CHECK(culprit_of() == 1);
        CHECK(culprit_of() == 1);
    };
    // The rank decides alone, because no other rank listens.
    for (int ranks = 2; ranks <= processes::count(); ++ranks) processes::run(ranks, body, {.abort_timeout = {}});
}

TEST_CASE("requests: a rank whose body has returned is named by those who wait for it") {
    processes::run(processes::count(), [](auto& net) {
        if (net.size() == 1) return;
        rill::group workers{net, rill::topology::split_allgather{}, {.timeout = rill::seconds(2)}};
        std::vector<float> data(1000, 1);
        rill::all_reduce(workers, data, data);
        if (net.rank() == net.size() - 1) return;
        try {
            rill::all_reduce(workers, data, data);
            FAIL("no error");
        } catch (const rill::peer_failure& e) {
            CHECK(e.culprit() == net.size() - 1);
            CHECK(std::string(e.what()).find("has returned from its body without entering the operation") !=
                  std::string::npos);
        }
    });
}

TEST_CASE("requests: a cancelled operation ends on all ranks, naming the rank that cancelled it") {
    processes::run(processes::count(), [](auto& net) {
        if (net.size() == 1) return;
        rill::group workers{net, rill::topology::split_allgather{}};
        std::vector<float> data(1000, 1);
        const auto blamed = [&](auto call) -> rill::rank_t {
            try {
                call();
            } catch (const rill::error& e) {
                return e.culprit();
            }
            return rill::no_rank;
        };
        if (net.rank() == 0) {  // arrives too late for the operation to be done
            while (!net.aborted(workers.context())) net.sleep_until(net.now() + rill::milliseconds(1));
        } else {
            rill::request never = rill::start_all_reduce(workers, data, data);
            if (net.rank() == 1) {
                CHECK(!never.wait_for(rill::milliseconds(5)));
                never.cancel();
            }
            CHECK(blamed([&] { never.get(); }) == 1);
        }
        CHECK(blamed([&] { rill::barrier(workers); }) == 1);
    });
}
