// Aggregators that finish parts at their owners: what travels in the copy phase is finished.
#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/core/segment.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

using namespace cases;

namespace finishing {

inline std::atomic<std::size_t> finished{0};

/// A sum whose `finish` changes zero, must run once, and counts the values that it has finished.
struct counted_sum {
    static constexpr const char* name = "counted_sum";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = false;
    static constexpr bool finishes_at_owners = true;

    template <class T>
    static constexpr T identity() {
        return T{0};
    }
    template <class T>
    static constexpr T fold(T a, T b) {
        return a + b;
    }
    template <class T>
    static void finish(std::span<T> values, double weight) {
        for (T& value : values) value += static_cast<T>(weight);
        finished += values.size();
    }
    friend constexpr bool operator==(counted_sum, counted_sum) = default;
};

}  // namespace finishing

namespace {

using finishing::counted_sum;
using finishing::finished;

template <class Group>
using shape_of = typename std::remove_reference_t<Group>::topology_type;

/// A rank's vote at coordinate i: where i is a multiple of 4, even groups tie.
float vote(int rank, std::size_t i) {
    if (i % 4 == 0) return rank % 2 == 0 ? 1.0F : -1.0F;
    return (i * 7 + static_cast<std::size_t>(rank) * 5) % 3 == 0 ? 1.0F : -1.0F;
}

/// +1 where at least half of the ranks for which `votes` is true vote +1.
template <class Votes>
std::vector<float> majority(int ranks, std::size_t n, Votes votes) {
    std::vector<float> result(n);
    for (std::size_t i = 0; i < n; ++i) {
        int up = 0, down = 0;
        for (int r = 0; r < ranks; ++r)
            if (votes(r, i)) ++(vote(r, i) > 0 ? up : down);
        result[i] = up >= down ? 1.0F : -1.0F;
    }
    return result;
}

}  // namespace

TEST_CASE("sign_of_sum of votes is the vote of the majority, on all ranks and over all topologies") {
    const std::string failed = on_every_group([](auto& workers, auto fail) {
        if constexpr (shape_of<decltype(workers)>::has_copy_phase)
            for (std::size_t n : dimensions) {
                std::vector<float> votes(n), result(n);
                for (std::size_t i = 0; i < n; ++i) votes[i] = vote(workers.rank(), i);
                const auto everybody = [](int, std::size_t) { return true; };
                rill::all_reduce(workers, votes, result, rill::aggregate::sign_of_sum{});
                if (result != majority(workers.size(), n, everybody)) fail("dense, N=" + std::to_string(n));
                rill::all_reduce(workers, votes, votes, rill::aggregate::sign_of_sum{});
                if (votes != result) fail("in place, N=" + std::to_string(n));
            }
    });
    CHECK(failed == "");
}

TEST_CASE("sign_of_sum of sparse votes: where nobody votes is a tie") {
    for (const bool lossy : {false, true}) {
        const std::string failed = on_every_group([&](auto& workers, auto fail) {
            if constexpr (shape_of<decltype(workers)>::has_copy_phase)
                for (std::size_t n : dimensions) {
                    rill::stream<float> votes(n), result;
                    const auto has_voted = [](int rank, std::size_t i) { return is_present(rank, i, 7); };
                    for (std::size_t i = 0; i < n; ++i)
                        if (has_voted(workers.rank(), i)) votes.push_back(i, vote(workers.rank(), i));
                    const auto values = lossy ? rill::value_coding::qsgd2 : rill::value_coding::raw;
                    rill::all_reduce(workers, votes, result, rill::aggregate::sign_of_sum{},
                                     {.copy = {.values = values}});
                    if (dense_copy(result, 0.0F) != majority(workers.size(), n, has_voted))
                        fail("N=" + std::to_string(n));
                }
        });
        CHECK(failed == "");
    }
}

TEST_CASE("each coordinate is finished once, at its owner") {
    const std::size_t n = 65;
    for (int ranks : rank_counts) {
        const auto check = [&](auto shape, auto call) {
            finished = 0;
            rill::simulated::run(ranks, {}, [&](auto& net) {
                rill::group workers{net, shape};
                call(workers);
            });
            INFO(std::string(decltype(shape)::name), " P=", ranks);
            CHECK(finished == n);
        };
        const auto expected = oracle<float>(ranks, n, counted_sum{});
        const auto expected_of_sparse = oracle<float>(ranks, n, counted_sum{}, 3);
        const auto dense = [&](auto& workers) {
            std::vector<float> result(n);
            rill::all_reduce(workers, dense_input<float>(workers.rank(), n), result, counted_sum{});
            CHECK(result == expected);
        };
        const auto sparse = [&](auto& workers) {
            rill::stream<float> result;
            rill::all_reduce(workers, sparse_input<float, std::uint32_t>(workers.rank(), n, 3), result, counted_sum{});
            CHECK(result.is_dense());
            CHECK(dense_copy(result, 0.0F) == expected_of_sparse);
        };
        const auto scattered = [&](auto& workers) {
            const rill::segment own =
                rill::split(n, static_cast<std::size_t>(workers.size()), static_cast<std::size_t>(workers.rank()));
            std::vector<float> result(own.size());
            rill::reduce_scatter(workers, dense_input<float>(workers.rank(), n), result, counted_sum{});
            CHECK(result == std::vector<float>(expected.begin() + static_cast<std::ptrdiff_t>(own.begin),
                                               expected.begin() + static_cast<std::ptrdiff_t>(own.end)));
        };
        const auto at_root = [&](auto& workers) {
            std::vector<float> result(n);
            rill::reduce(workers, dense_input<float>(workers.rank(), n), result, 0, counted_sum{});
            if (workers.rank() == 0) CHECK(result == expected);
        };
        for_each_topology([&](auto shape) {
            if constexpr (decltype(shape)::has_copy_phase) {
                check(shape, dense);
                check(shape, sparse);
            }
            check(shape, scattered);
            check(shape, at_root);
        });
    }
}
