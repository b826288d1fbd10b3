// The demo's perceptron on Fashion-MNIST, in virtual time. `bench_elastic_training elastic STEPS` trains it on 8 ranks,
// without faults and with two ranks killed and one back. `bench_elastic_training SYSTEM STEPS` trains it on 7 workers
// with 100 images each, on cards of 1 Gbit/s. Prints accuracies and virtual seconds as JSON.
#include "../../examples/demo/arguments.hpp"
#include "../../examples/demo/elastic_rank.hpp"
#include "../../examples/demo/images.hpp"

#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/system/fault_tolerant_tree.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/paced.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace train = rill::train;
using rill::rank_t;
using rill::simulated::endpoint;

constexpr rill::duration computing = rill::milliseconds(20);  // of a step

demo::images read(const std::string& folder) {
    const auto part = [&](const char* name) {
        return train::read_idx_dataset(folder + "/" + name + "-images-idx3-ubyte.gz",
                                       folder + "/" + name + "-labels-idx1-ubyte.gz", 10);
    };
    return {.training = part("train"), .test = part("t10k")};
}

rill::simulated::network links() {
    constexpr std::uint64_t line = 125'000'000;
    return {.latency = rill::microseconds(50), .bandwidth = line, .cards = [](rank_t) {
                return rill::network_card::full_duplex(line);
            }};
}

double accuracy(const demo::images& data, std::span<const float> parameters) {
    train::perceptron<float> model{{784, 512, 10}};
    return train::accuracy(model, parameters, data.test);
}

struct outcome {
    double accuracy = 0, seconds = 0;
    std::size_t views = 0, ended = 0;
};

/// `second`: the virtual seconds of a step, to place the faults; 0 without any.
outcome train_team(const demo::arguments& chosen, const demo::images& data, double second) {
    auto network = links();
    const auto at = [&](double part) {
        return rill::nanoseconds(static_cast<std::int64_t>(second * part * 1e9 * static_cast<double>(chosen.steps)));
    };
    if (second > 0)
        network.faults.faults = {rill::faults::kill(3).at(at(0.2)), rill::faults::restart(3).at(at(0.3)),
                                 rill::faults::kill(6).at(at(0.4))};
    outcome reached;
    std::vector<std::vector<float>> models;
    std::uint32_t latest = 0;
    rill::simulated::run(chosen.ranks, network, [&](endpoint& net) {
        models.push_back(demo::train_elastic(net, chosen, data, {.least = 4}, [&](const demo::elastic_moment& now) {
            latest = std::max(latest, now.crew.epoch);
            net.sleep_until(net.now() + computing);
        }));
        reached.seconds = std::max(reached.seconds, (net.now() - rill::time_point{}).seconds());
    });
    for (const auto& each : models)
        if (each != models.front()) throw std::runtime_error("members have ended with other parameters");
    reached.views = latest + 1;
    reached.ended = models.size();
    reached.accuracy = accuracy(data, models.front());
    return reached;
}

void print_team(std::uint64_t steps, const demo::images& data) {
    demo::arguments chosen;
    chosen.steps = steps;
    const outcome whole = train_team(chosen, data, 0);
    const outcome killed = train_team(chosen, data, whole.seconds / static_cast<double>(steps));
    if (killed.views != 4 || killed.ended != 7) throw std::runtime_error("two deaths and a return were due");
    std::printf(
        "{\"accuracy_without\": %.4f, \"accuracy\": %.4f, \"points_apart\": %.2f, \"seconds_without\": %.3f, "
        "\"seconds\": %.3f}\n",
        whole.accuracy, killed.accuracy, 100 * std::abs(whole.accuracy - killed.accuracy), whole.seconds,
        killed.seconds);
}

// --- systems without faults

constexpr int workers = 7;

/// Steps of a trainer that `make(net, model, batches, options)` makes, until `is_over(trainer)`.
template <class Make, class Over>
outcome train_with(int ranks, const demo::images& data, Make&& make, Over&& is_over) {
    const rill::random_key key{1};
    outcome reached;
    rill::simulated::run(ranks, links(), [&](endpoint& net) {
        auto trainer =
            make(net, train::paced{net, train::perceptron<float>{{784, 512, 10}}, {computing / 3, computing * 2 / 3}},
                 train::minibatches{
                     data.training,
                     {.batch = 100, .rank = std::min(net.rank(), workers - 1), .ranks = workers, .key = key.derive(1)}},
                 train::trainer_options{.initial = key.derive(2), .group = {.timeout = rill::seconds(1000)}});
        while (trainer.step())
            if (is_over(trainer)) trainer.end();
        if (net.rank() != 0) return;
        reached.seconds = (net.now() - rill::time_point{}).seconds();
        reached.accuracy = accuracy(data, trainer.parameters());
    });
    return reached;
}

template <class Plan>
outcome in_lockstep(const demo::images& data, std::uint64_t steps, const Plan& plan) {
    return train_with(
        workers, data,
        [&](auto& net, auto model, auto batches, const auto& options) {
            return train::trainer{net, std::move(model), std::move(batches), plan, options};
        },
        [&](const auto& trainer) { return trainer.step_number() == steps; });
}

/// Each gradient moves the model as it arrives, at a seventh of the rate; as many gradients as in lockstep.
outcome with_server(const demo::images& data, std::uint64_t steps, std::uint32_t staleness) {
    const auto plan =
        rill::systems::stale_synchronous({.staleness = staleness}, train::sgd{}, train::constant_rate{0.1 / workers});
    return train_with(
        workers + 1, data,
        [&](auto& net, auto model, auto batches, const auto& options) {
            return train::asynchronous_trainer{net, std::move(model), std::move(batches), plan, options};
        },
        [&](const auto& trainer) { return trainer.version() >= workers * steps; });
}

outcome run(const std::string& system, const demo::images& data, std::uint64_t steps) {
    const train::sgd sgd{};
    const train::constant_rate rate{0.1};
    if (system == "server") return with_server(data, steps, 0);
    if (system == "asynchronous_server") return with_server(data, steps, rill::systems::unlimited);
    if (system == "ring") return in_lockstep(data, steps, train::bsp{rill::topology::ring{}, sgd, rate});
    if (system == "tree") return in_lockstep(data, steps, train::bsp{rill::topology::tree{}, sgd, rate});
    if (system == "backup_tree") return in_lockstep(data, steps, rill::systems::fault_tolerant_tree(sgd, rate));
    throw std::runtime_error("no system: " + system);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s elastic|server|asynchronous_server|ring|tree|backup_tree STEPS [FOLDER]\n",
                     argv[0]);
        return 2;
    }
    try {
        const std::string system = argv[1];
        const std::uint64_t steps = std::strtoull(argv[2], nullptr, 10);
        const demo::images data = read(argc > 3 ? argv[3] : "/usr/share/datasets/fashion-mnist");
        if (system == "elastic") {
            print_team(steps, data);
            return 0;
        }
        const outcome reached = run(system, data, steps);
        std::printf("{\"accuracy\": %.4f, \"seconds\": %.3f}\n", reached.accuracy, reached.seconds);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failed.what());
        return 1;
    }
}
