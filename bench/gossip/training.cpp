// Fashion-MNIST on 32 simulated ranks that have 1,875 images each: what a system's models are worth, and what a rank
// has sent and received until they are worth it. `bench_gossip_training STEPS SEED LABELS SYSTEM...` prints JSON. A
// rank has images of all labels where LABELS is 0, else of about so many.
#include "../shared/expected.hpp"
#include "job.hpp"
#include "judge.hpp"
#include "plain_training.hpp"

#include <rill/adapt/boost_matching.hpp>
#include <rill/rill.hpp>
#include <rill/stream/wire.hpp>
#include <rill/system/ad_psgd.hpp>
#include <rill/system/choco_sgd.hpp>
#include <rill/system/d_psgd.hpp>
#include <rill/system/d_squared.hpp>
#include <rill/system/dcd_psgd.hpp>
#include <rill/system/fed_avg.hpp>
#include <rill/system/gossip_grad.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/saps_psgd.hpp>
#include <rill/system/sgp.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gossip_bench;
using rill::simulated::endpoint;
using rill::train::sgd;
using rill::train::step_record;
using rill::train::warmup_cosine;

/// Links of (0, 5] MB/s, equal both ways, drawn at random: bytes per second, row by row.
std::vector<double> speeds_of(const job& of, std::size_t size = ranks) {
    std::vector<double> speeds(size * size);
    rill::random_sequence random(of.key().derive(3));
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < i; ++j)
            speeds[i * size + j] = speeds[j * size + i] = 5e6 * (1 - random.uniform()) + 1;
    return speeds;
}

plain::matrix rows_of(const std::vector<double>& speeds) {
    plain::matrix rows;
    for (auto at = speeds.begin(); at != speeds.end(); at += ranks) rows.emplace_back(at, at + ranks);
    return rows;
}

rill::simulated::network network_of(const job& of, std::size_t size = ranks) {
    std::vector<rill::network_link> links;
    for (const double speed : speeds_of(of, size))
        links.push_back({.latency = {}, .bandwidth = static_cast<std::uint64_t>(speed)});
    return {.links = rill::matrix_links(static_cast<int>(size), links), .computing = {}};
}

rill::topology::bandwidth_matching over_fast_links(const job& of) {
    return {.links = speeds_of(of), .least = 3e6, .window = 5, .matcher = rill::adapt::boost_matching{}};
}

/// How long a rank computes in a step of AD-PSGD, where messages travel only meanwhile. Else computing takes no time.
constexpr rill::duration a_step = rill::milliseconds(50);

double bytes_without_headers(const rill::traffic& wire) {
    return static_cast<double>(wire.bytes_sent + wire.bytes_received) -
           static_cast<double>(rill::wire::header_bytes * (wire.messages_sent + wire.messages_received));
}

rill::group_options patient(const job& of) { return {.timeout = rill::seconds(1'000'000), .seed = of.seed}; }

/// Trains with what `make(net, layers, options)` binds.
template <class Make>
std::vector<milestone> train(job& of, Make&& make) {
    judge judged(of);
    rill::simulated::run(ranks, network_of(of), [&](endpoint& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        own_batches images = of.images_of(rank);
        std::vector<float> parameters = of.first_model(), gradient(parameters.size());
        auto strategy = make(net, of.model.layers(), patient(of));
        double bytes = 0;
        for (std::uint64_t step = 0; step < of.steps; ++step) {
            const auto compute = [&](auto&&...) { return of.model.gradient(parameters, images.next(), gradient); };
            const step_record record = strategy.step(std::span(parameters), std::span(gradient), step, compute);
            bytes += bytes_without_headers(record.exchange.wire);
            if (of.is_judged(step + 1))
                judged.see(step + 1, parameters, bytes, (net.now() - rill::time_point{}).seconds());
        }
    });
    return judged.milestones();
}

template <class Plan>
std::vector<milestone> trained(job& of, const Plan& plan) {
    return train(of, [&](endpoint& net, auto layers, const auto& options) {
        return plan.template bind<float>(net, layers, options);
    });
}

void descend(std::span<float> parameters, std::span<const float> gradient, double rate) {
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= static_cast<float>(rate) * gradient[i];
}

/// Each rank descends alone.
struct alone {
    const job& of;

    template <class Compute>
    step_record step(std::span<float> parameters, std::span<float> gradient, std::uint64_t number, Compute&& compute) {
        step_record record{.step = number, .loss = compute()};
        descend(parameters, gradient, of.rate().rate(number));
        return record;
    }
};

/// A root besides the ranks, which asks half of them in each round to descend from its model, so many steps, and to
/// upload by how much they have moved it: what `codec` keeps of that.
template <class Codec>
std::vector<milestone> federated(job& of, const Codec& codec, std::uint64_t local_steps) {
    judge judged(of);
    double bytes = 0;
    rill::simulated::run(1 + ranks, network_of(of, 1 + ranks), [&](endpoint& net) {
        rill::group workers{net, rill::topology::star{}, patient(of)};
        auto fed = rill::systems::fed_avg(workers);
        auto kept = codec.bind(of.model.dimension());
        std::vector<float> model = of.first_model(), gradient(model.size()), change(model.size()), update(model.size());
        own_batches images = of.images_of(static_cast<std::size_t>(fed.is_root() ? 0 : net.rank() - 1));
        while (fed.next(model)) {
            const std::uint64_t first = (fed.number() - 1) * local_steps;
            if (!fed.is_root()) change = model;
            for (std::uint64_t step = first; step < first + local_steps && !fed.is_root(); ++step) {
                of.model.gradient(model, images.next(), gradient);
                descend(model, gradient, of.rate().rate(step));
            }
            for (std::size_t i = 0; i < model.size() && !fed.is_root(); ++i) change[i] = model[i] - change[i];
            const auto done = fed.reduce(change, update, kept, rill::aggregate::mean{}, {});
            if (!fed.is_root()) {
                bytes += bytes_without_headers(done.wire);
                continue;
            }
            for (std::size_t i = 0; i < model.size(); ++i) model[i] += update[i];
            judged.see_shared(first + local_steps, model, bytes, (net.now() - rill::time_point{}).seconds());
            if (first + local_steps >= of.steps) fed.end();
        }
    });
    return judged.milestones();
}

/// AD-PSGD: each rank computes, as long in each step, while a second activity of it exchanges models with one other
/// rank at a time. A push is a gradient times the rate of its step.
std::vector<milestone> in_pairs(job& of) {
    judge judged(of);
    rill::simulated::run(ranks, network_of(of), [&](endpoint& net) {
        own_batches images = of.images_of(static_cast<std::size_t>(net.rank()));
        std::vector<float> parameters = of.first_model(), gradient(parameters.size());
        const auto plan = rill::systems::ad_psgd(sgd{}, rill::train::constant_rate{1});
        auto replica = plan.bind<float>(net, std::span<const float>(parameters), patient(of));
        const auto see = [&](std::uint64_t step) {
            judged.see(step, parameters, bytes_without_headers(net.counted()),
                       (net.now() - rill::time_point{}).seconds());
        };
        for (std::uint64_t step = 0; step < of.steps; ++step) {
            const auto held = replica.pull(parameters);
            if (step > 0 && of.is_judged(step)) see(step);
            of.model.gradient(parameters, images.next(), gradient);
            for (float& each : gradient) each *= static_cast<float>(of.rate().rate(step));
            net.sleep_until(net.now() + a_step);
            replica.push(gradient, *held);
        }
        replica.retire();
        while (replica.pull(parameters)) {
        }
        see(of.steps);
    });
    return judged.milestones();
}

std::vector<milestone> run(job& of, const std::string& system) {
    using namespace rill;
    if (system == "fed_avg") return federated(of, compress::keep_all{}, epoch);
    if (system == "s_fed_avg_top")
        return federated(of, compress::error_feedback{compress::top_k{.density = 0.01}}, epoch);
    if (system == "s_fed_avg") return federated(of, compress::random_mask{.density = 0.01, .seed = of.seed}, epoch);
    if (system == "ad_psgd") return in_pairs(of);
    if (system == "none") return train(of, [&](auto&&...) { return alone{of}; });
    if (system == "psgd") return trained(of, systems::psgd(sgd{}, of.rate()));
    if (system == "top_k")
        return trained(
            of, train::compressed_bsp{topology::recursive_doubling{},
                                      compress::error_feedback{compress::top_k{.density = 0.001}}, sgd{}, of.rate()});
    const auto masked = [&](const auto& mixing, double density) {
        return trained(of, systems::saps_psgd({.density = density, .seed = of.seed}, mixing, sgd{}, of.rate()));
    };
    if (system == "d_psgd") return trained(of, systems::d_psgd(sgd{}, of.rate()));
    if (system == "d_psgd_after")
        return trained(of, train::decentralized{topology::ring_neighbours{}, sgd{}, of.rate()});
    if (system == "saps") return masked(over_fast_links(of), 0.01);
    if (system == "saps_10") return masked(over_fast_links(of), 0.1);
    if (system == "saps_random") return masked(topology::random_matching{}, 0.01);
    if (system == "gossip_grad") return trained(of, systems::gossip_grad(sgd{}, of.rate()));
    if (system == "sgp") return trained(of, systems::sgp(sgd{}, of.rate()));
    if (system == "choco") return trained(of, systems::choco_sgd({}, sgd{}, of.rate()));
    if (system == "dcd") return trained(of, systems::dcd_psgd({.density = 0.25}, sgd{}, of.rate()));
    if (system == "d_squared") return trained(of, systems::d_squared(sgd{}, of.rate()));
    if (system.starts_with("plain_")) return plain::run(of, system.substr(6), rows_of(speeds_of(of)));
    throw std::runtime_error("no system: " + system);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) {
        std::fprintf(stderr, "usage: bench_gossip_training STEPS SEED LABELS SYSTEM...\n");
        return 2;
    }
    try {
        job of(std::strtoull(arguments[1], nullptr, 10), std::strtoull(arguments[2], nullptr, 10),
               std::atoi(arguments[3]), "/usr/share/datasets/fashion-mnist");
        for (int i = 4; i < count; ++i) print(arguments[i], run(of, arguments[i]), i == 4 ? "{" : ",\n");
        std::printf("}\n");
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_training: %s\n", failed.what());
        return 1;
    }
}
