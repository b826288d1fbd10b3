// Collectives whose peers send arbitrary bytes: a call ends with a valid result, or with an error that blames one of
// them.
#include "../support/scripted.hpp"
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>

#include <vector>

namespace {

using namespace rill;
using rill::testing_support::scripted;

/// The factor by which received bytes may grow in memory, as in the target `frame`, and again as much for a fold of
/// them.
constexpr std::size_t bytes_per_byte = 128;
/// Memory for the group, its schedules, its arenas and the few hundred coordinates of this rank's own data.
constexpr std::size_t own_bytes = std::size_t{1} << 21;

stream<float> own_stream(std::size_t dimension, rank_t rank) {
    stream<float> own(dimension);
    for (std::size_t i = 0; i < dimension; i += 3) own.push_back(i, static_cast<float>(rank + 1));
    return own;
}

void require_valid(const stream<float>& result, std::size_t dimension) {
    RILL_FUZZ_REQUIRE(result.range() == (segment{0, dimension}), "the range of the call");
    RILL_FUZZ_REQUIRE(!result.is_dense() || result.count() == dimension, "a value for each coordinate");
    for (std::size_t i = 0; i < result.indices().size(); ++i) {
        RILL_FUZZ_REQUIRE(result.indices()[i] < dimension, "an index inside the range");
        RILL_FUZZ_REQUIRE(i == 0 || result.indices()[i - 1] < result.indices()[i], "ascending indices");
    }
}

stream_codings codings_of(unsigned chosen) {
    constexpr value_coding values[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd4, value_coding::qsgd2};
    const index_coding all = rill::fuzz::chosen_index_coding(chosen / 4 % rill::fuzz::index_choices);
    return {.contribution = {.values = values[chosen % 4], .indices = all, .bucket = 16},
            .partial = {.indices = all},
            .copy = {.indices = all}};
}

template <class Shape>
void reduce_stream(scripted& net, const Shape& shape, std::size_t dimension, unsigned chosen) {
    group workers{net, shape};
    const stream<float> own = own_stream(dimension, net.rank());
    stream<float> result;
    all_reduce(workers, own, result, aggregate::sum{}, codings_of(chosen));
    require_valid(result, dimension);
}

template <class Shape>
void reduce_dense(scripted& net, const Shape& shape, std::size_t dimension) {
    group workers{net, shape};
    std::vector<float> values(dimension, 1.0F);
    all_reduce(workers, values, values);
}

void gather_stream(scripted& net, std::size_t dimension, unsigned chosen) {
    group workers{net, topology::split_allgather{}};
    stream<float> own(dimension), result;
    const auto self = static_cast<std::size_t>(net.rank());
    if (self < dimension) own.push_back(self, 1.0F);
    all_gather(workers, own, result, codings_of(chosen).contribution);
    require_valid(result, dimension);
}

void from_root(scripted& net, std::size_t dimension, rank_t root) {
    group workers{net, topology::tree{}};
    std::vector<double> values(dimension, 1.0);
    reduce(workers, values, values, root);
    broadcast(workers, values, root);
}

void call(scripted& net, unsigned collective, std::size_t dimension, unsigned chosen) {
    switch (collective) {
        case 0: return reduce_dense(net, topology::ring{}, dimension);
        case 1: return reduce_dense(net, topology::halving_doubling{}, dimension);
        case 2: return reduce_stream(net, topology::recursive_doubling{}, dimension, chosen);
        case 3: return reduce_stream(net, topology::split_allgather{}, dimension, chosen);
        case 4: return reduce_stream(net, topology::tree{}, dimension, chosen);
        case 5: return gather_stream(net, dimension, chosen);
        default: return from_root(net, dimension, static_cast<rank_t>(chosen) % net.size());
    }
}

}  // namespace

RILL_FUZZ_TARGET(collective)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const unsigned collective = in.below(7);
    const int ranks = 2 + static_cast<int>(in.below(4));
    scripted net(static_cast<rank_t>(in.below(static_cast<unsigned>(ranks))), ranks);
    const std::size_t dimension = in.number<std::uint8_t>();
    const unsigned chosen = in.number<std::uint8_t>();
    while (!in.done()) {
        const unsigned how = in.number<std::uint8_t>();
        std::optional<std::size_t> cut;
        if ((how & 1U) != 0) cut = in.number<std::uint16_t>();
        net.expect(in.bytes(in.number<std::uint16_t>()), cut, (how & 2U) == 0);
    }
    const rill::fuzz::allocation_budget at_most(bytes_per_byte * net.bytes_to_come() + own_bytes);
    try {
        call(net, collective, dimension, chosen);
    } catch (const error& e) {
        RILL_FUZZ_REQUIRE(0 <= e.culprit() && e.culprit() < ranks, "an error names a rank");
        const bool is_duplicate = collective == 5 && e.notice().kind == failure::invalid_value;
        RILL_FUZZ_REQUIRE(e.culprit() != net.rank() || (is_duplicate && e.notice().other < net.rank()),
                          "an error blames one of the peers, or of two that give a coordinate the higher");
    }
    return 0;
}
