// A mixing of one's own: in round t each rank exchanges with the one whose number differs in bit t, on a hypercube. The
// compiler proves that it keeps the mean of all models, and that three rounds bring eight ranks together.
#include <rill/concept/mixing.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/mixing_rate.hpp>
#include <rill/topology/verify_mixing.hpp>
#include <rill/transport/simulated.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

template <int dimensions>
struct hypercube {
    static constexpr const char* name = "hypercube";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = false;

    struct bound {
        int size;
        constexpr void fill(std::uint64_t round, rill::rank_t rank, rill::mixing_row& row) const {
            const rill::rank_t other = rank ^ (1 << (round % dimensions));
            row = {};
            if (other >= size) return;  // it has no partner, and keeps its model
            row.own_weight = 0.5;
            row.senders.push_back({other, 0.5});
            row.receivers.push_back(other);
        }
    };
    constexpr bound bind(int size, rill::random_key) const { return {size}; }
    friend constexpr bool operator==(hypercube, hypercube) = default;
};
static_assert(rill::Mixing<hypercube<3>>);
static_assert(rill::topology::mixes_doubly(hypercube<3>{}, 8) && rill::topology::connects(hypercube<3>{}, 8, 3));

/// The first defect that the proof finds, if there is one.
template <class Mix>
void prove(const char* what, const Mix& mixing, int ranks, std::uint64_t window) {
    const auto verdict = rill::topology::verify_mixing(mixing, ranks, {.count = 3 * window, .window = window});
    std::printf("%s: %s\n", what, verdict.ok ? "proved" : verdict.what);
}

int main() {
    prove("8 ranks, any 3 rounds", hypercube<3>{}, 8, 3);
    prove("6 ranks, any 3 rounds", hypercube<3>{}, 6, 3);  // some are left over
    prove("8 ranks, any 2 rounds", hypercube<3>{}, 8, 2);

    rill::simulated::run(8, {}, [](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        rill::gossip replica{workers, hypercube<3>{}};
        std::vector<float> model{static_cast<float>(net.rank())};
        for (int round = 0; round < 3; ++round) {
            replica.mix(model);
            if (net.rank() == 0) std::printf("rank 0 after round %d: %g\n", round, static_cast<double>(model[0]));
        }
    });
}
