#include <rill/topology/any.hpp>

#include <rill/topology/chunked.hpp>
#include <rill/topology/proof.hpp>

#include <doctest/doctest.h>
#include "../collective/topologies.hpp"
#include "table.hpp"

#include <string>

using namespace rill;
using namespace rill::topology;

namespace {

constexpr bool holds_up(const any& shape, int size) {
    return computes_all_reduce(shape, size) && computes_reduce_scatter(shape, size) && computes_all_gather(shape, size);
}
static_assert(holds_up(ring{}, 5) && holds_up(recursive_doubling{}, 5) && holds_up(halving_doubling{}, 5));
static_assert(holds_up(split_allgather{}, 5) && holds_up(tree{.arity = 3}, 5) && holds_up(star{}, 5));

static_assert(!any::preserves_rank_order && !any::has_copy_phase);
static_assert(any_of<split_allgather, tree>::preserves_rank_order && any_of<split_allgather, tree>::has_copy_phase);
static_assert(!any_of<split_allgather, ring>::preserves_rank_order && any_of<split_allgather, ring>::has_copy_phase);
static_assert(RootedTopology<any_of<ring, star>> && !RootedTopology<any_of<ring, split_allgather>>);
static_assert(!OwnerTopology<any> && folds_at_owners(any{split_allgather{}}) && !folds_at_owners(any{ring{}}));
static_assert(!rill::detail::may_fold_at_owners<any_of<ring, tree>>);

static_assert(has_copy_phase(any{ring{}}) && !has_copy_phase(any{recursive_doubling{}}));
static_assert(preserves_rank_order(any{tree{}}) && !preserves_rank_order(any{ring{}}));
static_assert(can_be_cut(any{ring{}}.all_reduce(4, 0)) && !can_be_cut(any{halving_doubling{}}.all_reduce(4, 0)));

/// What it holds does not keep what it says.
struct boastful : recursive_doubling {
    constexpr bool holds_copy_phase() const { return true; }
};
static_assert(computes_all_reduce(recursive_doubling{}, 4) && !computes_all_reduce(boastful{}, 4));
struct owner_in_name : recursive_doubling {
    constexpr bool holds_owner_folds() const { return true; }
};
static_assert(!computes_all_reduce(owner_in_name{}, 4));

}  // namespace

TEST_CASE("any: the schedules are those of the shape that it holds, and are proved") {
    cases::for_each_topology([](const auto& shape) {
        const any held = shape;
        CHECK(std::string(held.shape_name()) == shape.name);
        for (int size = 1; size <= 9; ++size) {
            CAPTURE(shape.name);
            CAPTURE(size);
            const auto alike = [&](const auto& of) {
                CHECK(topology_test::written_down([&](rank_t rank) { return of(held, rank); }, size) ==
                      topology_test::written_down([&](rank_t rank) { return of(shape, rank); }, size));
            };
            alike([&](const auto& of, rank_t rank) { return of.all_reduce(size, rank); });
            alike([&](const auto& of, rank_t rank) { return of.reduce_scatter(size, rank); });
            alike([&](const auto& of, rank_t rank) { return of.all_gather(size, rank); });
            CHECK(has_copy_phase(held) == shape.has_copy_phase);
            CHECK(preserves_rank_order(held) == shape.preserves_rank_order);
            CHECK(folds_at_owners(held) == folds_at_owners(shape));
            CHECK(can_be_cut(held.all_reduce(size, 0)) == can_be_cut(shape.all_reduce(size, 0)));
            if (can_be_cut(held.all_reduce(size, 0)))
                CHECK(verify({operation::all_reduce, size, 0, promises_of(held)},
                             [&](rank_t rank) { return chunked_schedule(held.all_reduce(size, rank), 3); }));
            CHECK(computes_all_reduce(held, size));
            CHECK(computes_reduce_scatter(held, size));
            CHECK(computes_all_gather(held, size));
            for (rank_t root = 0; root < size; ++root) {
                CHECK(computes_reduce(held, size, root));
                CHECK(computes_broadcast(held, size, root));
            }
        }
    });
}

TEST_CASE("any: equal where shape and options are; the fingerprint tells them apart") {
    CHECK(any{} == any{split_allgather{}});
    CHECK(any{ring{}} != any{star{}});
    CHECK(any{tree{.arity = 2}} != any{tree{.arity = 3}});
    CHECK(fingerprint(any{ring{}}) == fingerprint(any{ring{}}));
    CHECK(fingerprint(any{ring{}}) != fingerprint(any{star{}}));
    CHECK(fingerprint(any{tree{.arity = 2}}) != fingerprint(any{tree{.arity = 3}}));
}
