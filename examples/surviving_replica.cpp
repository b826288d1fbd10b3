// Descent without a barrier goes on when a rank dies: the others begin anew with the newest model that one of them has.
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/protocol/take_newest.hpp>
#include <rill/rill.hpp>
#include <rill/session/survivors.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

using namespace rill::straggler;

const rill::simulated::network cluster{
    .latency = rill::microseconds(50),
    .computing = [](rill::rank_t rank, std::uint64_t, double) { return rill::milliseconds(10 + 5 * rank); },
    .faults = {.faults = {rill::faults::kill(2).at(rill::milliseconds(700))}}};

int main() {
    rill::simulated::run(4, cluster, [](auto& net) {
        const rill::train::descent rule{rill::train::sgd{}, rill::train::constant_rate{0.02}};
        std::vector<double> model(3), gradient(3);
        std::uint64_t rounds = 0;  // that have moved this rank's model
        rill::survivors alive{net};
        alive.run([&](auto& members) {  // all living ranks end the training, or all begin anew
            rill::group workers{members, rill::topology::ring{}};
            const std::uint64_t before = rill::take_newest(workers, model, rounds);
            if (net.rank() == 0) std::printf("%d ranks begin at round %d\n", members.size(), static_cast<int>(before));
            rill::partial_all_reduce replica{workers, two_choices{2}, bounded{16}, plain_sum{}, rule, model};
            try {
                while (const auto held = replica.pull(model)) {
                    if (before + held->version >= 100) {
                        replica.end();
                        continue;
                    }
                    net.compute(1);
                    for (std::size_t i = 0; i < model.size(); ++i) gradient[i] = model[i] - 1;
                    replica.push(gradient, *held);
                }
            } catch (const rill::error& failed) {  // names the same culprit on all ranks
                if (net.rank() == 0) std::printf("%s\n", failed.what());
                model.assign(replica.newest().begin(), replica.newest().end());
                rounds = before + replica.version();
                throw;
            }
            rounds = before + replica.version();
        });
        std::printf("rank %d after round %d: %.3f\n", net.rank(), static_cast<int>(rounds), model[0]);
    });
}
