// The dense all_reduce by one-sided access gives the bits, receipts and errors of the one by messages.
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/start.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include "cases.hpp"
#include "foresight.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace cases;
using rill::in_process::endpoint;

namespace {

constexpr rill::topology::split_allgather shape;
/// The largest number of floats that goes through slots.
constexpr std::size_t most_small = endpoint::window::slot_bytes / sizeof(float);

/// Neither commutes nor associates, and its finish depends on the weight.
struct skewed {
    static constexpr const char* name = "skewed";
    static constexpr bool is_commutative = false;
    static constexpr bool finish_is_trivial = false;
    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) {
        return static_cast<T>(a * T{2} - b);
    }
    template <class T>
    static constexpr void finish(std::span<T> values, double weight) {
        for (T& value : values) value = static_cast<T>(value + static_cast<T>(weight));
    }
    constexpr bool operator==(const skewed&) const = default;
};

template <class T>
std::vector<T> noise(int rank, std::size_t n) {
    const rill::counter_rng random(rill::random_key{11}.derive(rank));
    std::vector<T> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(2000 * random.uniform(i) - 1000);
    return x;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::equal(std::as_bytes(std::span(a)).begin(), std::as_bytes(std::span(a)).end(),
                                              std::as_bytes(std::span(b)).begin());
}

bool same_receipt(const rill::receipt& fused, const rill::receipt& sent) {
    return fused.contributors == sent.contributors && fused.weight == sent.weight && fused.age == sent.age &&
           fused.rounds == sent.rounds && fused.operation_number == sent.operation_number && fused.wire == sent.wire;
}

/// `in_place(rank)` tells which ranks call in place.
template <class T, class Fold, class InPlace>
void compare(endpoint& net, rill::group<endpoint, rill::topology::split_allgather>& fused, auto& sent, std::size_t n,
             const Fold& fold, InPlace in_place, const rill::contribution& own, failures& failed) {
    const auto input = noise<T>(net.rank(), n);
    const auto run = [&](auto& workers, bool here, std::vector<T>& output, rill::receipt& receipt) {
        auto given = input;
        output.assign(n, T{5});
        if (here) output = input;
        receipt = here ? rill::all_reduce(workers, output, output, fold, own)
                       : rill::all_reduce(workers, given, output, fold, own);
        if (given != input) failed.add("an input has changed");
    };
    std::vector<T> one, other;
    rill::receipt by_memory, by_messages;
    run(fused, in_place(net.rank()), one, by_memory);
    run(sent, false, other, by_messages);
    const std::string where = std::string(Fold::name) + " P=" + std::to_string(net.size()) + " N=" + std::to_string(n) +
                              " rank " + std::to_string(net.rank());
    if (!same_bits(one, other)) failed.add(where + ": other bits than by messages");
    if (!same_receipt(by_memory, by_messages)) failed.add(where + ": another receipt than by messages");
}

template <class T, class Fold>
std::string beside_messages(int ranks, const std::vector<std::size_t>& sizes, const Fold& fold,
                            rill::contribution silent = {}) {
    failures failed;
    rill::in_process::run(ranks, [&](endpoint& net) {
        rill::group fused{net, shape};
        rill::subgroup<endpoint> plain(net, rill::view::all(net));
        rill::group sent{plain, shape};
        const rill::contribution own = net.rank() == 1 ? silent : rill::contribution{.weight = 2, .age = 3};
        for (const std::size_t n : sizes) {
            compare<T>(
                net, fused, sent, n, fold, [](int) { return false; }, own, failed);
            compare<T>(
                net, fused, sent, n, fold, [](int) { return true; }, own, failed);
            compare<T>(
                net, fused, sent, n, fold, [](int rank) { return rank % 2 == 0; }, own, failed);
        }
    });
    return failed.text();
}

/// The errors of all four ranks, of operations that fail on all of them.
template <class Body>
void expect_failure(rill::rank_t culprit, rill::failure kind, const std::string& what, rill::duration timeout,
                    Body body) {
    failures failed;
    rill::in_process::run(4, [&](endpoint& net) {
        rill::group workers{net, shape, rill::group_options{.timeout = timeout}};
        const std::string rank = "rank " + std::to_string(net.rank());
        for (int again = 0; again < 2; ++again) try {
                body(workers);
                failed.add(rank + ": no error");
            } catch (const rill::error& e) {
                if (e.culprit() != culprit || e.notice().kind != kind ||
                    std::string(e.what()).find(what) == std::string::npos)
                    failed.add(rank + " blames rank " + std::to_string(e.culprit()) + ": " + e.what());
            } catch (const std::domain_error&) {
                if (again != 0 || net.rank() != culprit) failed.add(rank + " throws what another rank threw");
            }
    });
    CHECK(failed.text() == "");
}

constexpr rill::duration hour = rill::seconds(3600);
constexpr std::size_t small_size = 500, large_size = 100'000;

/// A sum that throws or waits on the rank that is told to.
struct troubled : rill::aggregate::sum {
    static constexpr const char* name = "troubled";
    bool breaks = false;
    const std::function<void()>* waits = nullptr;
    template <class T>
    T fold(T a, T b) const {
        if (breaks) throw std::domain_error("this fold is broken");
        if (waits != nullptr) (*waits)();
        return a + b;
    }
    bool operator==(const troubled&) const = default;
};

}  // namespace

static_assert(rill::SharedMemoryTransport<endpoint>);
static_assert(!rill::SharedMemoryTransport<rill::subgroup<endpoint>>);
static_assert(rill::SharedMemoryTransport<rill::traced<endpoint>>);
static_assert(!rill::SharedMemoryTransport<rill::simulated::endpoint>);

TEST_CASE("fused: topologies that fold at the owners use one-sided access") {
    for (int ranks = 1; ranks <= 17; ++ranks)
        for (int rank = 0; rank < ranks; ++rank) {
            const auto plan = shape.all_reduce(ranks, rank);
            REQUIRE(plan.parts() == ranks);
            REQUIRE(plan.rounds() == (ranks == 1 ? 0 : 2));
            for (int i = 0; i + 1 < ranks; ++i) {
                CHECK(plan.receive(0, i).parts == rill::part_range{rank, rank + 1});
                CHECK(plan.receive(1, i).parts.first == plan.receive(1, i).peer);
            }
        }
}

TEST_CASE("fused: bits and receipts are those of the all_reduce by messages") {
    const std::vector<std::size_t> sizes = {0, 1, 2, 63, 64, 65, 1000};
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 9, 17}) CHECK(beside_messages<float>(ranks, sizes, skewed{}) == "");
    for (const int ranks : {2, 3, 9})
        CHECK(beside_messages<float>(ranks, {most_small - 1, most_small, most_small + 1, 50'000}, skewed{}) == "");
}

TEST_CASE("fused: all element types and folds") {
    const std::vector<std::size_t> sizes = {65, most_small / 2 + 1, most_small + 1};
    CHECK(beside_messages<double>(5, sizes, rill::aggregate::mean{}) == "");
    CHECK(beside_messages<float>(4, sizes, rill::aggregate::mean{}) == "");
    CHECK(beside_messages<std::int32_t>(3, sizes, rill::aggregate::sum{}) == "");
    CHECK(beside_messages<std::int64_t>(2, sizes, rill::aggregate::max{}) == "");
}

TEST_CASE("fused: a rank of weight zero contributes the neutral element") {
    CHECK(beside_messages<float>(3, {65, most_small + 1}, rill::aggregate::mean{}, {.weight = 0, .age = 9}) == "");
    CHECK(beside_messages<double>(2, {65, most_small + 1}, skewed{}, {.weight = 0, .age = 9}) == "");
}

TEST_CASE("fused: a rank that calls something else is found at once") {
    const auto with_odd_one = [](rill::rank_t odd, const std::string& what, auto usual, auto other) {
        expect_failure(odd, rill::failure::mismatch, what, hour, [&](auto& workers) {
            if (workers.rank() == odd)
                other(workers);
            else
                usual(workers);
        });
    };
    const auto reduce = [](std::size_t n) {
        return [n](auto& workers) {
            std::vector<float> x(n, 1);
            rill::all_reduce(workers, x, x);
        };
    };
    for (const std::size_t n : {small_size, large_size}) {
        with_odd_one(2, "dimension", reduce(n), reduce(n + 1));
        with_odd_one(1, "calls barrier", reduce(n), [](auto& workers) { rill::barrier(workers); });
        with_odd_one(3, "element type int32", reduce(n), [n](auto& workers) {
            std::vector<std::int32_t> x(n, 1);
            rill::all_reduce(workers, x, x);
        });
        with_odd_one(2, "another aggregator", reduce(n), [n](auto& workers) {
            std::vector<float> x(n, 1);
            rill::all_reduce(workers, x, x, rill::aggregate::max{});
        });
    }
    with_odd_one(0, "dimension", reduce(small_size), reduce(large_size));
}

TEST_CASE("fused: a fold that throws on one rank ends the operation everywhere, and inputs are unchanged") {
    for (const std::size_t n : {small_size, large_size}) {
        std::atomic<int> changed{0};
        expect_failure(2, rill::failure::exception, "this fold is broken", hour, [&](auto& workers) {
            const std::vector<float> input(n, 1);
            std::vector<float> output(n);
            troubled fold;
            fold.breaks = workers.rank() == 2;
            try {
                rill::all_reduce(workers, input, output, fold);
            } catch (...) {
                if (input != std::vector<float>(n, 1)) ++changed;
                throw;
            }
        });
        CHECK(changed == 0);
    }
}

TEST_CASE("fused: a rank that dies is the culprit") {
    for (const std::size_t n : {small_size, large_size}) {
        std::atomic<int> named{0};
        const auto body = [&](endpoint& net) {
            try {
                rill::group workers{net, shape};
                if (net.rank() == 3) throw std::domain_error("had enough");
                std::vector<float> x(n, 1);
                rill::all_reduce(workers, x, x);
            } catch (const rill::error& e) {
                if (e.culprit() == 3) ++named;
                throw;
            }
        };
        CHECK_THROWS_AS(rill::in_process::run(4, body), std::domain_error);
        CHECK(named == 3);
    }
}

TEST_CASE("fused: the others time out if a rank never enters") {
    for (const std::size_t n : {small_size, large_size})
        expect_failure(1, rill::failure::timeout, "rank 1 has not entered the operation", rill::seconds(2),
                       [&](auto& workers) {
                           std::vector<float> x(n, 1);
                           if (workers.rank() == 1)
                               while (!workers.net().aborted(workers.context()))
                                   workers.net().sleep_until(workers.net().now() + rill::milliseconds(1));
                           rill::all_reduce(workers, x, x);
                       });
}

TEST_CASE("fused: no rank unwinds while another one reads its memory") {
    std::atomic<int> is_inside{0};
    expect_failure(1, rill::failure::timeout, "for rank 1, which has entered the operation", rill::seconds(2),
                   [&](auto& workers) {
                       const std::vector<float> input(large_size, 1);
                       std::vector<float> output(large_size);
                       bool has_waited = false;
                       const std::function<void()> wait = [&] {
                           if (std::exchange(has_waited, true)) return;
                           ++is_inside;
                           while (!workers.net().aborted(workers.context()))
                               workers.net().sleep_until(workers.net().now() + rill::milliseconds(1));
                           workers.net().sleep_until(workers.net().now() + rill::milliseconds(20));
                           --is_inside;
                       };
                       troubled fold;
                       if (workers.rank() == 1) fold.waits = &wait;
                       try {
                           rill::all_reduce(workers, input, output, fold);
                       } catch (...) {
                           if (is_inside != 0) throw std::logic_error("memory is let go while another is inside");
                           throw;
                       }
                   });
}

TEST_CASE("fused: operations of several groups and sizes are in flight at once") {
    failures failed;
    rill::in_process::run(3, [&](endpoint& net) {
        rill::group one{net, shape}, other{net, shape};
        const std::size_t sizes[] = {10, most_small, most_small + 5, 40'000};
        for (int step = 0; step < 12; ++step) {
            std::vector<std::vector<float>> x, y, z;
            std::vector<rill::request> requests;
            for (const std::size_t n : sizes) {
                x.push_back(noise<float>(net.rank() + step, n));
                y.emplace_back(n);
                z.push_back(x.back());
            }
            for (std::size_t i = 0; i < x.size(); ++i) {
                requests.push_back(rill::start_all_reduce(one, x[i], y[i]));
                requests.push_back(rill::start_all_reduce(other, z[i], z[i]));
            }
            for (auto& each : requests) each.get();
            for (std::size_t i = 0; i < x.size(); ++i) {
                auto due = noise<float>(step, sizes[i]);
                for (int rank = 1; rank < 3; ++rank) {
                    const auto added = noise<float>(rank + step, sizes[i]);
                    for (std::size_t j = 0; j < due.size(); ++j) due[j] += added[j];
                }
                if (!same_bits(y[i], due) || !same_bits(z[i], due)) failed.add("a wrong sum");
            }
        }
    });
    CHECK(failed.text() == "");
}

TEST_CASE("fused: an operation that lags behind later ones gets its own result") {
    failures failed;
    rill::in_process::run(2, [&](endpoint& net) {
        rill::group workers{net, shape};
        std::vector<float> late(100, 1), now(100), result(100);
        std::atomic<bool> begins{false};
        rill::request behind = rill::start(workers, [&](auto& lane) {
            if (net.rank() == 0)
                while (!begins) net.sleep_until(net.now() + rill::microseconds(100));
            return rill::all_reduce(lane, late, result);
        });
        for (int step = 1; step <= 200; ++step) {
            if (step == 25) begins = true;
            std::fill(now.begin(), now.end(), static_cast<float>(step));
            rill::all_reduce(workers, now, now);
            if (now != std::vector<float>(100, 2.0F * static_cast<float>(step))) failed.add("a wrong sum");
        }
        behind.get();
        if (result != std::vector<float>(100, 2)) failed.add("a wrong sum of the one behind");
    });
    CHECK(failed.text() == "");
}
