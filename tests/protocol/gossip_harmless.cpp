// Messages that come twice, late or in another order change nothing: models are bit for bit those of a run without
// faults, for all mixings and codecs, simulated and over threads.
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/run_faulty.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace harmless_cases {

using namespace rill;

constexpr int ranks = 5;
constexpr std::uint64_t rounds = 25;
constexpr std::size_t dimension = 40;
using models = std::vector<std::vector<double>>;

/// The rounds of one rank. Faults begin once all ranks have made their gossip.
template <class Net, class Mix, class Policy>
void some_rounds(Net& net, const Mix& mixing, const Policy& policy, time_point faults_begin, models& all,
                 auto has_begun) {
    group workers{net, topology::ring{}, {.timeout = seconds(30)}};
    gossip replica{workers, mixing};
    auto& model = all[static_cast<std::size_t>(net.rank())];
    model.resize(dimension);
    for (std::size_t i = 0; i < dimension; ++i)
        model[i] = static_cast<double>(mix64(static_cast<std::uint64_t>(net.rank()), i) % 1000);
    auto codec = policy.template bind<double>(dimension);
    barrier(workers);
    has_begun();
    net.sleep_until(faults_begin);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const round_receipt& done = replica.mix(model, codec);
        CHECK(done.wire.messages_received == done.in.size() - 1);
    }
    CHECK(replica.round() == rounds);
}

template <class Mix, class Policy>
models simulated_models(const Mix& mixing, const Policy& policy, const fault_plan& plan, std::uint64_t* twice) {
    models all(ranks);
    simulated::network network{.latency = microseconds(50)};
    network.faults = plan;
    const auto report = simulated::run(
        ranks, network, [&](auto& net) { some_rounds(net, mixing, policy, time_point{} + seconds(2), all, [] {}); });
    for (const auto& link : report.links) *twice += link.duplicated;
    return all;
}
/// Empty if the operating system has held up a rank for so long that faults struck before all had made their gossip.
template <class Mix, class Policy>
models models_of_threads(const Mix& mixing, const Policy& policy, const fault_plan& plan) {
    models all(ranks);
    fault_scene scene(ranks, plan);
    std::atomic<int> have_begun{0};
    try {
        in_process::run(ranks, [&](auto& inner) {
            const time_point start = inner.now();
            run_faulty(inner, scene, [&](auto& net) {
                some_rounds(net, mixing, policy, start + milliseconds(400), all, [&] { ++have_begun; });
            });
        });
    } catch (const error&) {
        if (have_begun == ranks) throw;
        return {};
    }
    return all;
}

template <class Mix, class Policy>
void are_harmless(const Mix& mixing, const Policy& policy, bool on_threads = false) {
    CAPTURE(Mix::name);
    std::uint64_t twice = 0;
    const models wanted = simulated_models(mixing, policy, {}, &twice);
    CHECK(twice == 0);
    for (const double share : {0.2, 1.0}) {
        const fault_plan plan{.faults = {faults::duplicate(share).at(seconds(1))}, .seed = 3};
        CHECK(simulated_models(mixing, policy, plan, &twice) == wanted);
    }
    CHECK(twice > 4 * rounds);
    for (const fault& late : {faults::delay_up_to(milliseconds(2)), faults::reorder(0.5, milliseconds(2))}) {
        CHECK(simulated_models(mixing, policy, {.faults = {late.at(seconds(1))}, .seed = 3}, &twice) == wanted);
        if (!on_threads) continue;
        const fault_plan both{.faults = {late.at(milliseconds(300)), faults::duplicate(0.5).at(milliseconds(300))},
                              .seed = 5};
        const models seen = models_of_threads(mixing, policy, both);
        CHECK((seen.empty() || seen == wanted));
    }
}

}  // namespace harmless_cases

TEST_CASE("gossip: messages that come twice, late or in another order change nothing") {
    using namespace harmless_cases;
    const compress::random_mask mask{.density = 0.3, .seed = 5};
    const compress::difference differences{compress::top_k{.count = 7}, 0.3};
    are_harmless(topology::ring_neighbours{}, compress::keep_all{});
    are_harmless(topology::ring_neighbours{}, mask);
    are_harmless(topology::ring_neighbours{}, differences, true);
    are_harmless(topology::metropolis{{{0, 1}, {1, 2}, {1, 3}, {3, 4}}}, differences);
    are_harmless(topology::exponential{}, mask);
    are_harmless(topology::rotating{}, compress::keep_all{});
    are_harmless(topology::random_matching{}, mask, true);
    are_harmless(topology::directed{{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 2}}}, compress::keep_all{});
}
