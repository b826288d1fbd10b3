// expect: does not commute and the topology reorders ranks; use
// mentions: first_rank[^\n]*topology::ring[\s\S]*first_rank[^\n]*topology::any_of
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/any.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <span>
#include <vector>

/// The contribution of the lowest rank: associative, not commutative.
struct first_rank {
    static constexpr const char* name = "first_rank";
    static constexpr bool is_commutative = false;
    static constexpr bool finish_is_trivial = true;
    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T) {
        return a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) {}
    friend constexpr bool operator==(first_rank, first_rank) = default;
};

#ifdef RILL_FIXED
using shape = rill::topology::recursive_doubling;
using one_of_some = rill::topology::any_of<rill::topology::split_allgather, rill::topology::tree>;
#else
using shape = rill::topology::ring;
using one_of_some = rill::topology::any;
#endif

template <class Shape>
void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, Shape{}};
    rill::all_reduce(workers, values, values, first_rank{});
}
template void step<shape>(rill::in_process::endpoint&, std::vector<float>&);
template void step<one_of_some>(rill::in_process::endpoint&, std::vector<float>&);
