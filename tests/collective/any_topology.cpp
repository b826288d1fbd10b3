#include <rill/topology/any.hpp>

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/with_codings.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>
#include "foresight.hpp"
#include "topologies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace {

using namespace rill;

constexpr std::size_t count = 23;

/// Values that round when they are added.
float real(int rank, std::size_t i) {
    return 1.0F / static_cast<float>(3 * i + 7 * static_cast<std::size_t>(rank) + 1);
}

/// Some entries of each rank, others of each.
stream<float> sparse_reals(int rank) {
    stream<float> made(count);
    for (std::size_t i = 0; i < count; ++i)
        if ((i + static_cast<std::size_t>(rank)) % 3 != 0) made.push_back(i, real(rank, i));
    return made;
}

void append(std::vector<float>& all, const std::vector<float>& more) {
    all.insert(all.end(), more.begin(), more.end());
}
/// The range, whether it is dense, the indices and the values.
void append(std::vector<float>& all, const stream<float>& more) {
    append(all,
           {static_cast<float>(more.range().begin), static_cast<float>(more.range().end), more.is_dense() ? 1.F : 0.F});
    for (const auto index : more.indices()) all.push_back(static_cast<float>(index));
    append(all, {more.values().begin(), more.values().end()});
}

/// What each rank of a simulated network gets from `all_reduce` and the root from `reduce`, in values that round.
template <class Shape>
std::vector<std::vector<float>> results(int ranks, const Shape& shape) {
    std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks) + 1, std::vector<float>(count));
    simulated::run(ranks, {}, [&](simulated::endpoint& self) {
        group workers{self, shape, {.timeout = seconds(10)}};
        std::vector<float> mine;
        for (std::size_t i = 0; i < count; ++i) mine.push_back(real(self.rank(), i));
        std::vector<float> rooted(count);
        all_reduce(workers, mine, all[static_cast<std::size_t>(self.rank())]);
        reduce(workers, mine, rooted, self.size() - 1);
        if (self.rank() == self.size() - 1) all.back() = rooted;
    });
    return all;
}

/// What each rank of a simulated network gets from the collectives other than `reduce`, written one after the other.
template <class Shape>
std::vector<std::vector<float>> results_of_others(int ranks, const Shape& shape) {
    std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks));
    simulated::run(ranks, {}, [&](simulated::endpoint& self) {
        group workers{self, shape, {.timeout = seconds(10)}};
        auto& mine = all[static_cast<std::size_t>(self.rank())];
        const segment place = split(count, static_cast<std::size_t>(ranks), static_cast<std::size_t>(self.rank()));
        std::vector<float> whole(count), part(place.size()), gathered(count);
        for (std::size_t i = 0; i < count; ++i) whole[i] = real(self.rank(), i);

        reduce_scatter(workers, whole, part);
        append(mine, part);
        all_gather(workers, part, gathered);
        append(mine, gathered);
        for (rank_t root = 0; root < ranks; ++root) {
            std::vector<float> data = self.rank() == root ? whole : std::vector<float>(count);
            broadcast(workers, data, root);
            append(mine, data);
        }
        stream<float> sum;
        all_reduce(workers, sparse_reals(self.rank()), sum);
        append(mine, sum);
        const coding lossy{.values = value_coding::qsgd4, .bucket = 8};
        all_reduce(workers, sparse_reals(self.rank()), sum, aggregate::sum{},
                   {.contribution = lossy, .copy = has_copy_phase(shape) ? lossy : coding{}});
        append(mine, sum);
    });
    return all;
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
        return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
    });
}

}  // namespace

TEST_CASE("a group over topology::any computes the bits of the shape that it holds") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        for (int ranks = 1; ranks <= 9; ++ranks) {
            CAPTURE(ranks);
            CHECK(results(ranks, topology::any{shape}) == results(ranks, shape));
        }
    });
}

TEST_CASE("the other collectives and streams, of rounded values too, get the same bits over topology::any") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        for (int ranks = 1; ranks <= 5; ++ranks) {
            CAPTURE(ranks);
            CHECK(same_bits(results_of_others(ranks, topology::any{shape}), results_of_others(ranks, shape)));
        }
    });
}

TEST_CASE("topology::any refuses a lossy copy coding where the shape that it holds has no copy phase") {
    const coding lossy{.values = value_coding::qsgd4, .bucket = 8};
    const compress::with_codings policy{compress::keep_all{}, {.copy = lossy}};
    simulated::run(2, {}, [&](simulated::endpoint& self) {
        group workers{self, topology::any{topology::recursive_doubling{}}, {.timeout = seconds(10)}};
        auto codec = policy.bind(count);
        const std::vector<float> mine(count, 1.0F);
        std::vector<float> dense(count);
        stream<float> sum;
        CHECK_THROWS_AS(all_reduce(workers, sparse_reals(self.rank()), sum, aggregate::sum{}, {.copy = lossy}),
                        contract_violation);
        CHECK_THROWS_AS(all_reduce(workers, mine, dense, codec), contract_violation);
        CHECK_THROWS_AS(all_reduce(workers, mine, sum, codec), contract_violation);

        group with_copies{self, topology::any{topology::ring{}}, {.timeout = seconds(10)}};
        group ring{self, topology::ring{}, {.timeout = seconds(10)}};
        std::vector<float> same(count);
        all_reduce(with_copies, mine, dense, codec);
        all_reduce(ring, mine, same, codec);
        CHECK(dense == same);
    });
}

TEST_CASE("topology::any sends the same messages, in chunks where the transport asks for them") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        simulated::run(4, {}, [&](simulated::endpoint& self) {
            foresight::choosy<simulated::endpoint> picky(self, 100);
            const auto traffic_of = [&](const auto& of) {
                group workers{picky, of, {.timeout = seconds(10)}};
                std::vector<float> data(1000, 1.0F);
                return all_reduce(workers, data, data).wire;
            };
            CHECK(traffic_of(topology::any{shape}) == traffic_of(shape));
        });
    });
}

TEST_CASE(
    "ranks that share memory compute the same bits over topology::any, and need messages only where its shape does") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        std::vector<std::vector<float>> plain(3), chosen(3);
        in_process::run(3, [&](in_process::endpoint& self) {
            const auto sum_over = [&](const auto& of, const char* name) {
                trace_log log(1000);
                traced net(self, log);
                group workers{net, of, {.timeout = seconds(10), .name = name}};
                std::vector<float> data(1000, 1.0F / static_cast<float>(self.rank() + 3));
                log.clear();
                all_reduce(workers, data, data);
                const auto posts = std::count_if(log.events().begin(), log.events().end(), [](const trace_event& each) {
                    return each.kind == trace_event::what::post;
                });
                data.push_back(static_cast<float>(posts));
                return data;
            };
            plain[static_cast<std::size_t>(self.rank())] = sum_over(shape, "direct");
            chosen[static_cast<std::size_t>(self.rank())] = sum_over(topology::any{shape}, "any");
        });
        CHECK(plain == chosen);
        CHECK((chosen[2].back() == 0) == folds_at_owners(shape));
    });
}

TEST_CASE("ranks that hold different topologies in topology::any are named") {
    CHECK_THROWS_AS(simulated::run(3, {},
                                   [](simulated::endpoint& self) {
                                       const topology::any odd = topology::star{}, usual = topology::ring{};
                                       group workers{self, self.rank() == 2 ? odd : usual, {.timeout = seconds(10)}};
                                   }),
                    mismatch);
}
