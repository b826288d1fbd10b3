// What an exchange costs without a barrier, in a simulated cluster of 8 hosts with 200 Mbit/s: rounds of all ranks and
// steps with a parameter server compared with an all_reduce around a ring, and the start of a round compared with a
// barrier. `bench_rna_exchange NUMBERS STEPS` prints JSON.
#include "shared/expected.hpp"

#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using rill::simulated::endpoint;
using namespace rill::straggler;

constexpr int workers = 8;
constexpr rill::duration timeout = rill::seconds(1000);
const rill::simulated::network cluster{.latency = rill::microseconds(100), .bandwidth = 0, .cards = [](rill::rank_t) {
                                           return rill::network_card::full_duplex(25'000'000);
                                       }};
const rill::train::descent step{rill::train::sgd{}, rill::train::constant_rate{1}};

struct job {
    std::size_t numbers;
    std::uint64_t steps;
};

/// Seconds of a step, of which `work(net, model, gradient)` makes `of.steps` on each of so many ranks. It returns
/// how long that took this rank, from its first model to that of the last step, or nothing if it only serves. Gradients
/// are -1, and the final model counts the steps of all workers.
template <class Work>
double seconds_of(const job& of, int ranks, Work&& work) {
    rill::duration longest{};
    rill::simulated::run(ranks, cluster, [&](endpoint& net) {
        std::vector<float> model(of.numbers);
        const std::vector<float> gradient(of.numbers, -1);
        const std::optional<rill::duration> taken = work(net, model, gradient);
        if (!taken) return;
        bench::require(model[0] == static_cast<float>(of.steps * workers), "the model");
        longest = std::max(longest, *taken);
    });
    return longest.seconds() / static_cast<double>(of.steps);
}

double ring(const job& of) {
    return seconds_of(of, workers, [&](endpoint& net, auto& model, const auto& gradient) {
        rill::group all{net, rill::topology::ring{}, {.timeout = timeout}};
        std::vector<float> sum(of.numbers);
        const rill::time_point first = net.now();
        for (std::uint64_t done = 0; done < of.steps; ++done) {
            rill::all_reduce(all, gradient, sum);
            for (std::size_t i = 0; i < model.size(); ++i) model[i] -= sum[i];
        }
        return net.now() - first;
    });
}

/// Steps of the loop that all replicas share. The workers have their first models at different times; their steps begin
/// together, as those of a ring do, or `apart`: each one so much after the one before.
template <class Replica>
std::optional<rill::duration> work_with(const job& of, endpoint& net, Replica& replica, std::vector<float>& model,
                                        const std::vector<float>& gradient, rill::duration apart = {}) {
    rill::time_point first = rill::time_point{} + rill::seconds(100);
    std::optional<rill::duration> taken;
    for (std::uint64_t done = 0; const auto held = replica.pull(model); ++done) {
        if (done == 0) net.sleep_until(first = first + apart * net.rank());
        if (done < of.steps) {
            replica.push(gradient, *held);
        } else {
            taken = net.now() - first;
            replica.retire();
        }
    }
    return taken;
}

double rounds(const job& of) {
    return seconds_of(of, workers, [&](endpoint& net, auto& model, const auto& gradient) {
        rill::group all{net, rill::topology::ring{}, {.timeout = timeout}};
        rill::partial_all_reduce replica{all, all_ready{}, in_step{}, plain_sum{}, step, model};
        return work_with(of, net, replica, model, gradient);
    });
}

double barrier(std::uint64_t steps) {
    double seconds = 0;
    rill::simulated::run(workers, cluster, [&](endpoint& net) {
        rill::group all{net, rill::topology::recursive_doubling{}};
        const rill::time_point first = net.now();
        for (std::uint64_t done = 0; done < steps; ++done) rill::barrier(all);
        seconds = std::max(seconds, (net.now() - first).seconds() / static_cast<double>(steps));
    });
    return seconds;
}

/// When a rank has begun the rounds of a run: it calls `all_reduce` equally often in each.
std::vector<rill::time_point> entries(const rill::trace_log& log, std::uint64_t rounds) {
    std::vector<rill::time_point> calls;
    for (const rill::trace_event& event : log.events())
        if (event.kind == rill::trace_event::what::span && std::string_view(event.name) == "all_reduce")
            calls.push_back(event.begin);
    std::sort(calls.begin(), calls.end());
    bench::require(!calls.empty() && calls.size() % rounds == 0, "the number of calls");
    std::vector<rill::time_point> first;
    for (std::size_t i = 0; i < calls.size(); i += calls.size() / rounds) first.push_back(calls[i]);
    return first;
}

/// Seconds from the entry of the first rank, which has decided on the start of a round, to that of the last one.
double start(std::uint64_t steps) {
    std::vector<rill::trace_log> logs(workers);
    std::uint64_t rounds = 0;
    rill::simulated::run(workers, cluster, [&](endpoint& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        rill::group all{net, rill::topology::ring{}, {.timeout = timeout}};
        std::vector<float> model(1);
        const std::vector<float> gradient{-1};
        rill::partial_all_reduce replica{all, all_ready{}, in_step{}, plain_sum{}, step, model};
        for (std::uint64_t done = 0; const auto held = replica.pull(model);)
            done++ < steps ? replica.push(gradient, *held) : replica.retire();
        rounds = replica.version();
    });
    bench::require(rounds == steps + 1, "the number of rounds");  // in the last one all ranks leave
    std::vector<std::vector<rill::time_point>> of_ranks;
    for (const rill::trace_log& log : logs) of_ranks.push_back(entries(log, rounds));
    rill::duration sum{};
    for (std::size_t round = 0; round < rounds; ++round) {
        const auto [first, last] = std::minmax_element(of_ranks.begin(), of_ranks.end(),
                                                       [&](auto& a, auto& b) { return a[round] < b[round]; });
        sum = sum + ((*last)[round] - (*first)[round]);
    }
    return sum.seconds() / static_cast<double>(rounds);
}

double served(const job& of, const rill::server_options& options, rill::duration apart = {}) {
    const int ranks = options.dedicated ? workers + options.servers : workers;
    return seconds_of(of, ranks, [&](endpoint& net, auto& model, const auto& gradient) {
        rill::parameter_server replica{net, options, bounded{0}, step, model};
        return work_with(of, net, replica, model, gradient, apart);
    });
}

/// A pull and a push of 1 % of the numbers, which move these only.
double served_sparse(const job& of) {
    return seconds_of(of, workers + 1, [&](endpoint& net, auto& model, const auto&) -> std::optional<rill::duration> {
        rill::parameter_server replica{net, {.servers = 1, .timeout = timeout}, bounded{0}, step, model};
        if (replica.is_server()) return replica.pull(model), std::nullopt;
        std::vector<std::uint32_t> keys;
        for (std::size_t i = 0; i < of.numbers; i += 100) keys.push_back(static_cast<std::uint32_t>(i));
        std::vector<float> values(keys.size());
        rill::stream<float, std::uint32_t> gradient(of.numbers);
        for (const std::uint32_t key : keys) gradient.push_back(key, -1.0F);
        auto held = replica.pull(keys, values);
        const rill::time_point first = net.now();
        for (std::uint64_t done = 0; done < of.steps; ++done) {
            replica.push(gradient, *held);
            held = replica.pull(keys, values);
        }
        const rill::duration taken = net.now() - first;
        replica.retire();
        while (replica.pull(model)) continue;
        return taken;
    });
}

}  // namespace

int main(int count, char** arguments) {
    const auto number = [&](int i) { return count == 3 ? std::strtoull(arguments[i], nullptr, 10) : 0; };
    const job of{.numbers = static_cast<std::size_t>(number(1)), .steps = number(2)};
    if (of.numbers == 0 || of.steps == 0) {
        std::fprintf(stderr, "usage: bench_rna_exchange NUMBERS STEPS\n");
        return 2;
    }
    try {
        const double base = ring(of);
        std::printf("{\"ring_seconds\": %.6g, \"rounds_over_ring\": %.6g, ", base, rounds(of) / base);
        for (const int servers : {1, 2, 4})
            std::printf("\"servers_%d_over_ring\": %.6g, ", servers,
                        served(of, {.servers = servers, .timeout = timeout}) / base);
        const rill::server_options on_all{.servers = workers, .dedicated = false, .timeout = timeout};
        const rill::duration part{static_cast<std::int64_t>(base * 1e9) / (2 * workers)};
        std::printf("\"on_all_over_ring\": %.6g, \"on_all_apart_over_ring\": %.6g, ", served(of, on_all) / base,
                    served(of, on_all, part) / base);
        std::printf("\"start_over_barrier\": %.6g, ", start(of.steps) / barrier(of.steps));
        std::printf("\"dense_over_sparse\": %.6g}\n",
                    served(of, {.servers = 1, .timeout = timeout}) / served_sparse(of));
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_rna_exchange: %s\n", failed.what());
        return 1;
    }
}
