// Gradient descent without a barrier: steps per second of eager-SGD and RNA, and of the same loop with a barrier.
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int workers_in_all = 16;
constexpr std::uint64_t rounds = 100;

/// A gradient takes between 10 and 60 ms.
rill::duration computing_time(rill::rank_t rank, std::uint64_t gradient, double) {
    rill::random_sequence draw(rill::random_key{1}.derive(rank, gradient));
    return rill::milliseconds(10) + rill::microseconds(static_cast<std::int64_t>(draw.below(50'000)));
}

template <class Trigger, class Staleness>
void descend(const char* name, const Trigger& trigger, const Staleness& staleness) {
    const rill::train::descent rule{rill::train::sgd{}, rill::train::constant_rate{0.01}};
    rill::simulated::run(workers_in_all, {.computing = computing_time}, [&](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<double> model(100), gradient(100);
        rill::partial_all_reduce replica{workers, trigger, staleness, rill::straggler::plain_sum{}, rule, model};
        while (const auto held = replica.pull(model)) {
            if (held->version >= rounds) {
                replica.end();
                continue;
            }
            net.compute(1);
            for (std::size_t i = 0; i < model.size(); ++i) gradient[i] = model[i] - net.rank();  // minimum: 7.5
            replica.push(gradient, *held);
        }
        if (net.rank() != 0) return;
        std::uint64_t counted = 0;
        while (const auto fate = replica.fate()) counted += fate->what == rill::push_fate::outcome::counted;
        const double seconds = (net.now() - rill::time_point{}).seconds();
        std::printf("%-28s %6.1f rounds and %5.1f gradients of this rank a second; off by %.2f\n", name,
                    static_cast<double>(replica.version()) / seconds, static_cast<double>(counted) / seconds,
                    std::fabs(model[0] - 7.5));
    });
}

int main() {
    using namespace rill::straggler;
    descend("all_ready (a barrier)", all_ready{}, in_step{});
    descend("majority, in_step (eager)", majority{}, in_step{});
    descend("two_choices, bounded (RNA)", two_choices{2}, bounded{16});
    descend("solo, bounded", solo{}, bounded{16});
}
