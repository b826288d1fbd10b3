// A parameter server on two of ten ranks: each step of a worker touches 50 of 100,000 coordinates, and only these
// travel.
#include <rill/protocol/parameter_server.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/transport/simulated.hpp>

#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

constexpr std::uint32_t coordinates = 100'000;
constexpr int steps = 300;

/// A gradient takes between 10 and 60 ms.
rill::duration computing_time(rill::rank_t rank, std::uint64_t gradient, double) {
    rill::random_sequence draw(rill::random_key{1}.derive(rank, gradient));
    return rill::milliseconds(10) + rill::microseconds(static_cast<std::int64_t>(draw.below(50'000)));
}

/// The coordinates of one step, ascending; low ones come more often.
std::vector<std::uint32_t> draw_keys(rill::random_sequence& draw) {
    std::set<std::uint32_t> keys;
    while (keys.size() < 50) keys.insert(static_cast<std::uint32_t>(draw.below(1 + draw.below(coordinates))));
    return {keys.begin(), keys.end()};
}

template <class Staleness>
void descend(const char* name, const Staleness& staleness) {
    const rill::train::descent rule{rill::train::sgd{}, rill::train::constant_rate{0.5}};
    rill::simulated::run(10, {.computing = computing_time}, [&](rill::simulated::endpoint& net) {
        std::vector<float> model(coordinates), values(50);
        rill::parameter_server replica{net, {.servers = 2}, staleness, rule, model};
        rill::random_sequence draw(rill::random_key{2}.derive(net.rank()));
        std::vector<std::uint32_t> keys = draw_keys(draw);
        double seconds = 0, bytes = 0;
        for (int step = 1; const auto held = replica.pull(keys, values); keys = draw_keys(draw), ++step) {
            rill::stream<float> gradient(coordinates);
            for (std::size_t i = 0; i < keys.size(); ++i) gradient.push_back(keys[i], values[i] - 1.0F);  // minimum: 1
            net.compute(1);
            replica.push(gradient, *held);
            if (step < steps) continue;
            seconds = (net.now() - rill::time_point{}).seconds();
            bytes = static_cast<double>(net.counted().bytes_sent + net.counted().bytes_received);
            replica.retire();
        }
        replica.pull(model);  // the final one: all that was pushed is in it
        if (net.rank() != 0) return;
        std::printf("%-10s %4.1f steps a second, %4.0f bytes a step (dense: %u); coordinate 0 is %.3f\n", name,
                    steps / seconds, bytes / steps, 8 * coordinates, static_cast<double>(model[0]));
    });
}

int main() {
    descend("bounded{0}", rill::straggler::bounded{0});
    descend("bounded{3}", rill::straggler::bounded{3});
    descend("unbounded", rill::straggler::unbounded{});
}
