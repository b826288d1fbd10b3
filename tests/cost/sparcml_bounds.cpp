// The bounds of SparCML's analysis (Renggli et al., SC 2019, section 5.3) compared with virtual time. α is the latency,
// β_d the time of a value, β_s that of an index and a value. The bounds count the payload only, so the time of the
// headers is subtracted. A byte takes one nanosecond.
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>

#include <doctest/doctest.h>
#include "simulate.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill;

constexpr std::int64_t alpha = 5'000;
constexpr std::int64_t header = wire::header_bytes;
constexpr std::size_t dimension = 64'000;
constexpr std::size_t k = 320;
constexpr std::int64_t k_values = k * sizeof(float);  // bytes, and so nanoseconds
constexpr std::int64_t k_entries = k * (sizeof(std::uint32_t) + sizeof(float));
constexpr std::int64_t all_values = dimension * sizeof(float);
const simulated::network links{.latency = nanoseconds(alpha), .bandwidth = 1'000'000'000};
const simulated::network cards{.latency = nanoseconds(alpha), .bandwidth = 0, .cards = [](rank_t) {
                                   return network_card::full_duplex(1'000'000'000);
                               }};

/// Where the ranks have their k coordinates. With `own_part` and `next_part` all lie in the part that `split_allgather`
/// assigns to the rank or to the next one, otherwise they are spread evenly; only `full` and `random` overlap.
enum class overlap { full, none, random, own_part, next_part };

std::vector<std::uint32_t> coordinates(rank_t rank, int ranks, overlap how) {
    std::vector<std::uint32_t> chosen;
    random_sequence random(random_key{5}.derive(rank));
    for (std::size_t i = 0; i < k; ++i) {
        if (how == overlap::own_part || how == overlap::next_part) {
            const rank_t part = (rank + (how == overlap::next_part ? 1 : 0)) % ranks;
            chosen.push_back(static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(dimension) /
                                                                 static_cast<std::uint32_t>(ranks) *
                                                                 static_cast<std::uint32_t>(part));
            continue;
        }
        const std::size_t place = i * (dimension / k);
        const auto shift = how == overlap::full   ? 0
                           : how == overlap::none ? static_cast<std::size_t>(rank)
                                                  : random.below(static_cast<std::uint64_t>(2 * ranks));
        chosen.push_back(static_cast<std::uint32_t>(place + shift));
    }
    return chosen;
}

template <class Shape, class Collective>
std::int64_t time_of(const Shape& shape, int ranks, overlap how, const simulated::network& net, Collective run) {
    return support::simulate(ranks, net, shape,
                             [&](auto& workers) {
                                 const auto indices = coordinates(workers.rank(), ranks, how);
                                 const std::vector<float> values(k, 1.0F);
                                 stream<float> mine, result;
                                 mine.assign({{0, dimension}, sparse_view<float, std::uint32_t>{indices, values}});
                                 return run(workers, mine, result);
                             })
        .elapsed.ns;
}

constexpr auto reduce_sparse = [](auto& workers, auto& mine, auto& result) {
    return all_reduce(workers, mine, result, aggregate::sum{}, {.when = {.factor = 1e9}});  // stays sparse
};
constexpr auto reduce_dynamic = [](auto& workers, auto& mine, auto& result) {
    return all_reduce(workers, mine, result, aggregate::sum{}, {.when = {.factor = 0}});  // dense after the first fold
};
constexpr auto gather = [](auto& workers, auto& mine, auto& result) { return all_gather(workers, mine, result); };

/// An all-reduce of `values` floats that all ranks have.
template <class Shape>
std::int64_t dense_time_of(const Shape& shape, int ranks, std::size_t values, const simulated::network& net) {
    return support::simulate(ranks, net, shape,
                             [&](auto& workers) {
                                 const std::vector<float> mine(values, 1.0F);
                                 std::vector<float> sum(values);
                                 return all_reduce(workers, mine, sum);
                             })
        .elapsed.ns;
}

std::int64_t levels(int ranks) { return std::countr_zero(static_cast<unsigned>(ranks)); }

}  // namespace

TEST_CASE("SSAR_Recursive_double: log2(P) α + [log2(P) … (P - 1)] k β, and both bounds are reached") {
    for (const int ranks : {2, 4, 8, 16, 32}) {
        const std::int64_t rounds = levels(ranks);
        const std::int64_t least = rounds * (alpha + k_entries);
        const std::int64_t most = rounds * alpha + (ranks - 1) * k_entries;
        const auto payload = [&](overlap how) {
            return time_of(topology::recursive_doubling{}, ranks, how, links, reduce_sparse) - rounds * header;
        };
        CHECK(payload(overlap::full) == least);
        CHECK(payload(overlap::none) == most);
        const std::int64_t between = payload(overlap::random);
        CHECK(least <= between);
        CHECK(between <= most);
        if (ranks > 2) CHECK((least < between && between < most));
    }
}

TEST_CASE("the sparse gather by doubling: log2(P) α + (P - 1) k β without overlap") {
    for (const int ranks : {2, 8, 32}) {
        const std::int64_t most = levels(ranks) * alpha + (ranks - 1) * k_entries;
        const std::int64_t time = time_of(topology::recursive_doubling{}, ranks, overlap::none, links, gather);
        CHECK(time - (ranks - 1) * header == most);  // one frame from each other rank
    }
}

TEST_CASE("SSAR_Split_allgather: [2 (P - 1)/P … P] k β through cards that send and receive one message at a time") {
    // The latencies of messages that travel at the same time do not add up here: they cost 2 α, where the analysis has
    // at most P - 1 + log2(P).
    for (const int ranks : {2, 4, 8, 16}) {
        const std::int64_t least = 2 * (ranks - 1) * k_entries / ranks;
        const std::int64_t most = ranks * k_entries;
        const auto payload = [&](overlap how) {
            const std::int64_t time = time_of(topology::split_allgather{}, ranks, how, cards, reduce_sparse);
            return time - 2 * alpha - 2 * (ranks - 1) * header;
        };
        CHECK(payload(overlap::full) == least);
        CHECK(payload(overlap::none) == (ranks - 1) * (ranks + 1) * k_entries / ranks);
        CHECK(payload(overlap::next_part) == most);
        const std::int64_t between = payload(overlap::random);
        CHECK(least <= between);
        CHECK(between <= most);
    }
}

TEST_CASE("DSAR_Split_allgather: (P - 1)/P N β_d and [0 … k] β_s for the split, and both bounds are reached") {
    for (const int ranks : {2, 4, 8, 16}) {
        const std::int64_t least = (ranks - 1) * all_values / ranks;
        const std::int64_t most = k_entries + least;
        const auto payload = [&](overlap how) {
            const std::int64_t time = time_of(topology::split_allgather{}, ranks, how, cards, reduce_dynamic);
            return time - 2 * alpha - 2 * (ranks - 1) * header;
        };
        CHECK(payload(overlap::own_part) == least);
        CHECK(payload(overlap::next_part) == most);
        // Where coordinates are spread evenly the time does not depend on the overlap.
        for (const overlap how : {overlap::full, overlap::none})
            CHECK(payload(how) == (ranks - 1) * k_entries / ranks + least);
        const std::int64_t between = payload(overlap::random);
        CHECK(least < between);
        CHECK(between < most);
    }
}

TEST_CASE("lemma 5.1: no sparse all-reduce takes less than (P - 1) k β_d without overlap, or 2 (P - 1)/P k β_d") {
    for (const int ranks : {2, 4, 8, 16}) {
        const std::int64_t disjoint = (ranks - 1) * k_values;
        const std::int64_t equal = 2 * (ranks - 1) * k_values / ranks;
        const auto check = [&](const auto& shape) {
            CHECK(time_of(shape, ranks, overlap::none, cards, reduce_sparse) >= levels(ranks) * alpha + disjoint);
            CHECK(time_of(shape, ranks, overlap::full, cards, reduce_sparse) >= levels(ranks) * alpha + equal);
        };
        check(topology::recursive_doubling{});
        check(topology::ring{});
        // Two rounds, whose latencies do not add up: they may be fewer than log2(P).
        const auto split = [&](overlap how) {
            return time_of(topology::split_allgather{}, ranks, how, cards, reduce_sparse) - 2 * alpha;
        };
        CHECK(split(overlap::none) >= disjoint);
        CHECK(split(overlap::full) >= equal);
        // Equal supports that are known need no indices: a dense sum of k values reaches the bound.
        const std::int64_t dense = dense_time_of(topology::split_allgather{}, ranks, k, cards);
        CHECK(dense - 2 * alpha - 2 * (ranks - 1) * header == equal);
    }
}

TEST_CASE("lemma 5.2: a sum that becomes dense takes δ β_d or more, and κ/2 of the dense all-reduce's time") {
    constexpr double kappa = 0.5;  // an entry takes as many bytes as two values
    constexpr auto delta_values = static_cast<std::int64_t>(kappa * all_values);
    for (const int ranks : {2, 4, 8, 16}) {
        const std::int64_t messages = 2 * alpha + 2 * (ranks - 1) * header;
        const std::int64_t dense = dense_time_of(topology::split_allgather{}, ranks, dimension, cards) - messages;
        CHECK(dense == 2 * (ranks - 1) * all_values / ranks);
        for (const overlap how : {overlap::own_part, overlap::next_part, overlap::none, overlap::full}) {
            const std::int64_t time =
                time_of(topology::split_allgather{}, ranks, how, cards, reduce_dynamic) - messages;
            CHECK(time >= delta_values);
            CHECK(static_cast<double>(time) >= kappa / 2 * static_cast<double>(dense));
            // A split that sends nothing takes half of the dense time: no input gains more from DSAR_Split_allgather.
            CHECK(2 * time >= dense);
            if (how == overlap::own_part) CHECK(2 * time == dense);
            const std::int64_t doubling = time_of(topology::recursive_doubling{}, ranks, how, cards, reduce_dynamic);
            if (ranks > 2) CHECK(doubling >= levels(ranks) * alpha + delta_values);
        }
    }
}

TEST_CASE("random coordinates: the time predicted from the density is near the simulated one") {
    const cost::uniform_density density{static_cast<double>(k) / dimension};
    for (const int ranks : {4, 11, 16}) {
        const auto taken = support::simulate(ranks, links, topology::split_allgather{}, [&](auto& workers) {
            random_sequence random(random_key{9}.derive(workers.rank()));
            std::vector<std::uint32_t> indices;
            for (std::uint32_t i = 0; i < dimension; ++i)
                if (static_cast<double>(random.uniform()) < density.density) indices.push_back(i);
            const std::vector<float> values(indices.size(), 1.0F);
            stream<float> mine, result;
            mine.assign({{0, dimension}, sparse_view<float, std::uint32_t>{indices, values}});
            return reduce_sparse(workers, mine, result);
        });
        cost::stream_messages messages(dimension, density, {.when = {.factor = 1e9}});
        const auto predicted = cost::predict_all_reduce(topology::split_allgather{}, ranks, messages, links);
        CHECK(static_cast<double>(taken.elapsed.ns) ==
              doctest::Approx(static_cast<double>(predicted.elapsed.ns)).epsilon(0.06));
    }
}
