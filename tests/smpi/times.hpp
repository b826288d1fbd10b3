// The operations whose times are compared between SimGrid and rill's simulated network, and how the times are printed.
#pragma once

#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>

#include <cstddef>
#include <cstdio>

namespace times {

template <class Visit>
void for_each(Visit visit) {
    for (const std::size_t floats : {std::size_t{1} << 16U, std::size_t{1} << 20U}) {
        visit(rill::topology::ring{}, floats);
        visit(rill::topology::recursive_doubling{}, floats);
        visit(rill::topology::split_allgather{}, floats);
    }
}

inline void print(const char* shape, std::size_t floats, long long nanoseconds) {
    std::printf("%s %zu %lld\n", shape, floats, nanoseconds);
    std::fflush(stdout);
}

}  // namespace times
