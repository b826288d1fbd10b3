// Aggregators that need all contributions to a coordinate at once.
#include <rill/aggregate/median.hpp>
#include <rill/aggregate/trimmed_mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/contract.hpp>
#include <rill/topology/any.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cases;
using rill::topology::split_allgather;

namespace joining {

/// Throws at the value 666.
struct throwing {
    static constexpr const char* name = "throwing";
    static constexpr int least_ranks() { return 1; }
    template <class T>
    static T combine(std::span<T> values) {
        for (const T value : values)
            if (value == T{666}) throw std::runtime_error("666");
        return values.front();
    }
    friend constexpr bool operator==(throwing, throwing) { return true; }
};

}  // namespace joining

namespace {

template <class Body>
void on_transports(int ranks, Body body) {
    const auto on_rank = [&](auto& net) {
        rill::group workers{net, split_allgather{}};
        body(workers);
    };
    rill::in_process::run(ranks, on_rank);
    rill::simulated::run(ranks, {}, on_rank);
}

/// `combine` of the values of all ranks for which `contributes` is true.
template <class T, class A, class Contributes>
std::vector<T> oracle_of(const A& aggregator, int ranks, std::size_t n, Contributes contributes) {
    std::vector<T> result(n);
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<T> values;
        for (int r = 0; r < ranks; ++r)
            if (contributes(r)) values.push_back(value<T>(r, i));
        if (!values.empty()) result[i] = aggregator.combine(std::span<T>(values));
    }
    return result;
}

constexpr auto everybody = [](int) { return true; };

}  // namespace

TEST_CASE("all_reduce with a median or a trimmed mean equals the oracle") {
    failures wrong;
    const auto check = [&]<class T>(T, const auto& aggregator) {
        for (int ranks : rank_counts)
            for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{65}, std::size_t{70000}}) {
                if (ranks < aggregator.least_ranks()) continue;
                const auto expected = oracle_of<T>(aggregator, ranks, n, everybody);
                on_transports(ranks, [&](auto& workers) {
                    auto input = dense_input<T>(workers.rank(), n);
                    std::vector<T> output(n);
                    const auto done = rill::all_reduce(workers, input, output, aggregator);
                    if (output != expected || done.contributors != ranks)
                        wrong.add(aggregator.name + std::string(" N=") + std::to_string(n));
                    rill::all_reduce(workers, input, input, aggregator);
                    if (input != output) wrong.add("in place");
                });
            }
    };
    check(float{}, rill::aggregate::median{});
    check(std::int64_t{}, rill::aggregate::median{});
    check(double{}, rill::aggregate::trimmed_mean{.trim = 2});
    CHECK(wrong.text() == "");
}

TEST_CASE("ranks of weight 0 are not counted by a median") {
    failures wrong;
    for (std::size_t n : {std::size_t{65}, std::size_t{70000}})
        for (int silent : {1, 4, 5}) {
            const auto contributes = [&](int rank) { return rank >= silent; };
            const auto expected = oracle_of<float>(rill::aggregate::median{}, 5, n, contributes);
            on_transports(5, [&](auto& workers) {
                std::vector<float> output(n, 99);
                const bool own = contributes(workers.rank());
                const auto input = dense_input<float>(workers.rank(), own ? n : 0);
                const auto done = rill::all_reduce(workers, input, output, rill::aggregate::median{},
                                                   rill::contribution{.weight = own ? 1.0 : 0.0});
                if (output != expected) wrong.add("a value");
                if (done.contributors != 5 - silent) wrong.add("contributors");
            });
        }
    CHECK(wrong.text() == "");
}

TEST_CASE("an attack: one rank sends huge values, infinities or NaN, and the result stays among the others'") {
    failures wrong;
    for (const float attack : {1e30F, -1e30F, std::numeric_limits<float>::infinity(), std::nanf("")})
        on_transports(5, [&](auto& workers) {
            const std::size_t n = 100;
            std::vector<float> honest(n), median(n), mean(n);
            for (std::size_t i = 0; i < n; ++i)
                honest[i] = workers.rank() == 3 ? attack : static_cast<float>(i) + static_cast<float>(workers.rank());
            rill::all_reduce(workers, honest, median, rill::aggregate::median{});
            rill::all_reduce(workers, honest, mean, rill::aggregate::trimmed_mean{.trim = 1});
            for (std::size_t i = 0; i < n; ++i)
                for (const float found : {median[i], mean[i]})
                    if (!(static_cast<float>(i) <= found && found <= static_cast<float>(i) + 4)) wrong.add("moved");
        });
    CHECK(wrong.text() == "");
}

TEST_CASE("a trimmed mean refuses groups of 2 trim ranks, before anything is sent") {
    on_transports(4, [](auto& workers) {
        std::vector<float> values(3, 1);
        const auto before = workers.net().counted();
        CHECK_THROWS_WITH_AS(
            rill::all_reduce(workers, values, values, rill::aggregate::trimmed_mean{.trim = 2}),
            doctest::Contains("all_reduce with trimmed_mean: the number of ranks is 4; it must be at least 5"),
            rill::contract_violation);
        CHECK(workers.net().counted() == before);
    });
}

TEST_CASE("over a topology that is chosen at run time a median needs one that folds at owners") {
    const auto on_rank = [](auto& net) {
        using any = rill::topology::any_of<split_allgather, rill::topology::ring>;
        std::vector<float> middle(4, static_cast<float>(net.rank() * net.rank()));
        rill::group ring{net, any{rill::topology::ring{}}}, owners{net, any{split_allgather{}}};
        CHECK_THROWS_AS(rill::all_reduce(ring, middle, middle, rill::aggregate::median{}), rill::contract_violation);
        CHECK(middle[3] == static_cast<float>(net.rank() * net.rank()));
        rill::all_reduce(owners, middle, middle, rill::aggregate::median{});
        CHECK(middle == std::vector<float>(4, 4.0F));
    };
    rill::in_process::run(5, on_rank);
    rill::simulated::run(5, {}, on_rank);
}

TEST_CASE("ranks whose trims differ all hear of it") {
    failures wrong;
    on_transports(5, [&](auto& workers) {
        std::vector<float> values(3, 1);
        try {
            rill::all_reduce(workers, values, values,
                             rill::aggregate::trimmed_mean{.trim = workers.rank() == 2 ? 1 : 2});
            wrong.add("no error");
        } catch (const rill::mismatch&) {
        }
    });
    CHECK(wrong.text() == "");
}

TEST_CASE("a combine that throws ends the call on all ranks") {
    failures wrong;
    for (std::size_t n : {std::size_t{65}, std::size_t{70000}})
        on_transports(3, [&](auto& workers) {
            std::vector<float> values(n, 1), output(n);
            if (workers.rank() == 1) values[0] = 666;  // folded by rank 0
            try {
                rill::all_reduce(workers, values, output, joining::throwing{});
                wrong.add("no error");
            } catch (const std::exception& e) {  // where it was thrown, as it was thrown; elsewhere a rill::error
                if (std::string(e.what()).find("666") == std::string::npos) wrong.add(e.what());
            }
        });
    CHECK(wrong.text() == "");
}
