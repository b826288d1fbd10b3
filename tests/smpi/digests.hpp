// The results of every collective over every topology on all ranks, as one number per topology.
#pragma once

#include <rill/collective/group.hpp>
#include <rill/core/random.hpp>

#include "../collective/topologies.hpp"
#include "../mpi/evidence.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace digests {

inline constexpr int ranks = 24;  // not a power of two: in halving and doubling some ranks only hand their vector over

inline constexpr std::size_t dimensions[] = {1000};

/// The digest of one rank's results.
template <class Net, class Shape>
std::uint64_t of(Net& net, const Shape& shape) {
    rill::group workers{net, shape};
    const evidence::record seen = evidence::of(workers, dimensions);
    std::uint64_t all = 0;
    for (const std::uint64_t each : seen.digests()) all = rill::mix64(all, each);
    return all;
}

/// `of_ranks(shape)` returns the digests of all ranks, or nothing in the processes that do not print.
template <class OfRanks>
void print(const OfRanks& of_ranks) {
    cases::for_each_topology([&](auto shape) {
        const std::vector<std::uint64_t> each = of_ranks(shape);
        if (each.empty()) return;
        std::uint64_t all = 0;
        for (const std::uint64_t rank : each) all = rill::mix64(all, rank);
        std::printf("%s %016llx\n", decltype(shape)::name, static_cast<unsigned long long>(all));
        std::fflush(stdout);
    });
}

}  // namespace digests
