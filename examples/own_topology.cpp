// A topology of your own, and the compiler's proof that it is right: every rank sends everything to every other rank.
// It takes one round for any number of ranks: the least latency, for vectors so small that bytes do not matter.
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <array>
#include <cstdio>

/// One rank's schedule. `forgotten` is the number of peers that it leaves out, a mistake unless it is 0.
struct everybody_schedule {
    int size = 1;
    rill::rank_t rank = 0;
    int forgotten = 0;

    constexpr int parts() const { return 1; }
    constexpr int rounds() const { return size > 1 ? 1 : 0; }
    constexpr rill::action kind(int) const { return rill::action::fold; }
    constexpr int sends(int) const { return size - 1 - forgotten; }
    constexpr rill::transfer send(int, int i) const { return {(rank + 1 + i) % size, {0, 1}}; }
    constexpr int receives(int) const { return size - 1; }
    constexpr rill::transfer receive(int, int i) const { return {i < rank ? i : i + 1, {0, 1}}; }  // ascending

    friend constexpr bool operator==(const everybody_schedule&, const everybody_schedule&) = default;
};

/// Only an all-reduce. (Reduce-scatter and all-gather need a part per rank: see `split_allgather`, one round each.)
struct everybody {
    int forgotten = 0;

    static constexpr const char* name = "everybody";
    static constexpr bool preserves_rank_order = true;  // a k-way fold takes ranks in ascending order
    static constexpr bool has_copy_phase = false;       // nobody owns a part

    constexpr everybody_schedule all_reduce(int size, rill::rank_t rank) const { return {size, rank, forgotten}; }
    constexpr auto reduce_scatter(int size, rill::rank_t rank) const { return split.reduce_scatter(size, rank); }
    constexpr auto all_gather(int size, rill::rank_t rank) const { return split.all_gather(size, rank); }
    friend constexpr bool operator==(everybody, everybody) = default;

  private:
    static constexpr rill::topology::split_allgather split{};
};

static_assert(rill::Topology<everybody>);

/// Proves that every rank ends with every contribution exactly once, that every send has its receive, and that the
/// promises hold. Where the proof fails, the compiler's error names the defect.
static_assert(rill::topology::require_all_reduce<everybody{}, 1, 2, 3, 4, 5, 7, 8, 17>());
static_assert(!rill::topology::computes_all_reduce(everybody{.forgotten = 1}, 8));

template <class Topology>
void time(Topology topology) {
    rill::simulated::run(8, {.latency = rill::microseconds(50)}, [&](auto& net) {
        rill::group workers{net, topology};
        std::array<float, 4> loss{1, 2, 3, 4};
        net.sleep_until(rill::time_point{} + rill::milliseconds(1));  // all start at once
        const rill::receipt done = rill::all_reduce(workers, loss, loss);
        if (net.rank() == 0)
            std::printf("%-20s rounds: %2d, %3.0f us\n", Topology::name, done.rounds, done.elapsed.seconds() * 1e6);
    });
}

int main() {
    time(rill::topology::ring{});
    time(rill::topology::recursive_doubling{});
    time(everybody{});
    const auto defect = rill::topology::verify_all_reduce(everybody{.forgotten = 1}, 8);
    std::printf("forgetful: round %d, rank %d: %s\n", defect.round, defect.rank, defect.what);
}
