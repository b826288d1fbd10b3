// One loop, six systems that wait for no rank: when each of 8 ranks has computed 200 gradients, and how far off it
// ends.
#include <rill/rill.hpp>
#include <rill/system/ad_psgd.hpp>
#include <rill/system/eager_sgd.hpp>
#include <rill/system/local_sgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int worker_count = 8;
constexpr rill::time_point end = rill::time_point{} + rill::seconds(20);

/// A gradient takes between 10 and 60 ms, and 50 more on the second half of the ranks.
rill::duration computing_time(rill::rank_t rank, std::uint64_t gradient, double) {
    rill::random_sequence draw(rill::random_key{1}.derive(rank, gradient));
    return rill::milliseconds(rank < worker_count / 2 ? 10 : 60) + rill::microseconds(std::int64_t(draw.below(50'000)));
}

template <class PlanOf>
void descend(const char* name, int ranks, PlanOf&& plan_of) {
    double computed = 0, off = 0;
    rill::simulated::run(ranks, {.computing = computing_time}, [&](rill::simulated::endpoint& net) {
        std::vector<double> model(100), gradient(100);
        rill::random_sequence noise(rill::random_key{2}.derive(net.rank()));
        auto replica = plan_of(net.rank()).template bind<double>(net, model);
        while (const auto held = replica.pull(model)) {
            if (net.now() > end) replica.retire();
            if (net.now() > end) continue;
            net.compute(1);
            for (unsigned i = 0; i < 100; ++i) gradient[i] = model[i] - 1.495 + 0.01 * double(noise.below(100));
            replica.push(gradient, *held);
            ++computed;
        }
        if (net.rank() < worker_count) off = std::fmax(off, std::fabs(model[0] - 1));
    });
    std::printf("%-36s %5.1f gradients a second, off by %.3f\n", name, computed / 20, off);
}

int main() {
    using namespace rill::systems;
    const rill::train::sgd sgd{};
    const rill::train::constant_rate rate{0.02};
    const rill::view groups[]{{.members = {0, 1, 2, 3}}, {.members = {4, 5, 6, 7}}};
    const auto always = [](auto plan) { return [plan](int) { return plan; }; };
    descend("RNA", worker_count, always(rna({}, sgd, rate)));
    descend("RNA, fast and slow ranks in groups", worker_count,
            [&](int rank) { return grouped_rna({.alike = groups[rank / 4]}, {}, sgd, rate); });
    descend("eager-SGD", worker_count, always(eager_sgd(sgd, rate)));
    descend("parameter server, at most 3 ahead", worker_count + 1,
            always(stale_synchronous({.staleness = 3}, sgd, rate)));
    descend("AD-PSGD", worker_count, always(ad_psgd(sgd, rate)));
    descend("local SGD, 10 steps at a time", worker_count, always(local_sgd({.every = 10}, sgd, rate)));
}
