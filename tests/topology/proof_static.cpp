// The compiler proves all shipped topologies for 1 … 17 ranks. Each proof has its own variable, because each variable
// has its own budget of constant evaluation.
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <utility>

namespace {

using namespace rill::topology;

template <auto topology, int P>
constexpr bool all_reduces = computes_all_reduce(topology, P);
template <auto topology, int P>
constexpr bool reduce_scatters = computes_reduce_scatter(topology, P);
template <auto topology, int P>
constexpr bool all_gathers = computes_all_gather(topology, P);
template <auto topology, int P, int root>
constexpr bool reduces = computes_reduce(topology, P, root);
template <auto topology, int P, int root>
constexpr bool broadcasts = computes_broadcast(topology, P, root);

template <auto topology, int... I>
constexpr bool proved(std::integer_sequence<int, I...>) {
    return ((all_reduces<topology, I + 1> && reduce_scatters<topology, I + 1> && all_gathers<topology, I + 1>)&&...);
}

// Proves at the first root, one in the middle and the last.
template <auto topology, int... I>
constexpr bool proved_rooted(std::integer_sequence<int, I...>) {
    return ((reduces<topology, I + 1, 0> && reduces<topology, I + 1, I / 2> && reduces<topology, I + 1, I> &&
             broadcasts<topology, I + 1, 0> && broadcasts<topology, I + 1, I / 2> &&
             broadcasts<topology, I + 1, I>)&&...);
}

constexpr auto up_to_17 = std::make_integer_sequence<int, 17>{};
constexpr auto up_to_8 = std::make_integer_sequence<int, 8>{};

static_assert(proved<ring{}>(up_to_17));
static_assert(proved<split_allgather{}>(up_to_17));
static_assert(proved<recursive_doubling{}>(up_to_17));
static_assert(proved<halving_doubling{}>(up_to_17));
static_assert(proved<tree{}>(up_to_17) && proved_rooted<tree{}>(up_to_17));
static_assert(proved<star{}>(up_to_17) && proved_rooted<star{}>(up_to_17));
static_assert(proved<tree{.arity = 1}>(up_to_8) && proved_rooted<tree{.arity = 1}>(up_to_8));
static_assert(proved<tree{.arity = 3}>(up_to_8) && proved_rooted<tree{.arity = 3}>(up_to_8));

}  // namespace
