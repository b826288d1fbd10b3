// expect: rill::topology: all_reduce of[^\n]*5 ranks, round 0, rank 0:[^\n]*receive has no send in
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/proof.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

/// Everybody sends everything to everybody.
struct schedule {
    int size = 1;
    rill::rank_t rank = 0;

    constexpr int parts() const { return 1; }
    constexpr int rounds() const { return 1; }
    constexpr rill::action kind(int) const { return rill::action::fold; }
#ifdef RILL_FIXED
    constexpr int sends(int) const { return size - 1; }
#else
    constexpr int sends(int) const { return size - 2; }
#endif
    constexpr rill::transfer send(int, int i) const { return {(rank + 1 + i) % size, {0, 1}}; }
    constexpr int receives(int) const { return size - 1; }
    constexpr rill::transfer receive(int, int i) const { return {i < rank ? i : i + 1, {0, 1}}; }
    friend constexpr bool operator==(const schedule&, const schedule&) = default;
};

struct everybody {
    static constexpr const char* name = "everybody";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = false;

    constexpr schedule all_reduce(int size, rill::rank_t rank) const { return {size, rank}; }
    constexpr schedule reduce_scatter(int size, rill::rank_t rank) const { return {size, rank}; }
    constexpr schedule all_gather(int size, rill::rank_t rank) const { return {size, rank}; }
    friend constexpr bool operator==(everybody, everybody) = default;
};

static_assert(rill::topology::require_all_reduce<everybody{}, 5>());
