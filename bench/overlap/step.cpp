// Times training steps with and without overlap, on a perceptron of 8 equal layers whose computing time equals the time
// of its gradient exchange. Prints the seconds of each step on the slowest rank as JSON.
#include <rill/collective/barrier.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/overlapped_bsp.hpp>
#include <rill/train/paced.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/traced.hpp>

#include "../shared/plain_descent.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace train = rill::train;

constexpr int ranks = 4;
constexpr std::size_t layers = 8;
constexpr std::size_t width = 256;
constexpr std::size_t layer_bytes = width * (width + 1) * sizeof(float);

// The forward pass takes a third of the computing time, because it has one product where the backward pass has two.
constexpr train::pace computing{.forward = rill::milliseconds(40), .backward = rill::milliseconds(80)};
constexpr rill::duration computing_time = computing.forward + computing.backward;

/// Each rank sends 2 (P-1)/P of the gradient in the computing time.
constexpr rill::delays network{.latency = rill::microseconds(200),
                               .bandwidth = layers * layer_bytes * 2 * (ranks - 1) / ranks * 1'000'000'000 /
                                            static_cast<std::uint64_t>(computing_time.ns)};

constexpr train::sgd descent{.momentum = 0.9};
constexpr train::constant_rate rate{0.01};
constexpr train::bsp without{rill::topology::split_allgather{}, descent, rate};
constexpr train::overlapped_bsp with{rill::topology::split_allgather{}, descent, rate, train::no_clip{},
                                     rill::fusion{.bytes = layer_bytes}};

struct outcome {
    std::vector<std::vector<double>> seconds{ranks};  ///< of each step, a row per rank
    std::vector<std::vector<double>> exchange{ranks};
    std::vector<std::vector<float>> parameters{ranks};
    std::vector<rill::trace_log> logs{ranks};
};

train::dataset images() {
    const rill::counter_rng random(rill::random_key{5});
    train::dataset data{.rows = 64,
                        .columns = width,
                        .classes = static_cast<int>(width),
                        .features = rill::aligned_vector<float>(64 * width),
                        .labels = std::vector<std::int32_t>(64)};
    for (std::size_t i = 0; i < data.features.size(); ++i) data.features[i] = random.uniform(i);
    for (std::size_t row = 0; row < 64; ++row) data.labels[row] = static_cast<std::int32_t>(row % width);
    return data;
}

template <class Net, class Plan>
void train_on(Net& net, const Plan& plan, int steps, outcome& result) {
    const train::dataset data = images();
    const auto rank = static_cast<std::size_t>(net.rank());
    train::trainer trainer{net, train::paced{net, train::perceptron<float>(std::vector(layers + 1, width)), computing},
                           train::minibatches{data, {.batch = 4, .rank = net.rank(), .ranks = ranks}}, plan};
    for (int step = -1; step < steps; ++step) {
        rill::barrier(trainer.strategy().workers());
        const rill::time_point start = net.now();
        const auto span = net.span("step");
        const train::step_record record = trainer.step();
        if (step < 0) continue;  // warm-up
        result.seconds[rank].push_back((net.now() - start).seconds());
        result.exchange[rank].push_back(record.exchange.elapsed.seconds());
    }
    result.parameters[rank].assign(trainer.parameters().begin(), trainer.parameters().end());
}

template <class Plan>
outcome run(std::string_view transport, const Plan& plan, int steps) {
    outcome result;
    const auto body = [&](auto& inner) {
        rill::delayed slow{inner, network};
        rill::traced net{slow, result.logs[static_cast<std::size_t>(inner.rank())]};
        train_on(net, plan, steps, result);
    };
    if (transport == "in_process")
        rill::in_process::run(ranks, body);
    else if (transport == "simulated")
        rill::simulated::run(ranks, {.latency = {}, .bandwidth = 0}, body);
    else
        throw std::invalid_argument("no such transport: " + std::string(transport));
    for (const auto& parameters : result.parameters)
        if (parameters != result.parameters[0]) throw std::runtime_error("the ranks' parameters differ");
    const bench::descended due = bench::plain_descent(
        train::perceptron<float>(std::vector(layers + 1, width)), images(), {.batch = 4, .ranks = ranks}, plan,
        train::trainer_options{}.initial, steps + 1, [](std::vector<float>&) {});
    bench::require_near(result.parameters[0], due, "training");
    return result;
}

void print(const char* name, const std::vector<std::vector<double>>& rows, const char* end) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
        double slowest = 0;
        for (const auto& row : rows) slowest = std::max(slowest, row[i]);
        std::printf("%s%.9f", i == 0 ? "" : ", ", slowest);
    }
    std::printf("]%s", end);
}

void write(const std::string& path, const outcome& result) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    rill::write_trace(file, result.logs);
    std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4 || argc > 5) {
        std::fprintf(stderr, "usage: %s in_process|simulated without|with STEPS [TRACE]\n", argv[0]);
        return 2;
    }
    try {
        const std::string_view strategy = argv[2];
        if (strategy != "with" && strategy != "without") throw std::invalid_argument("with or without overlap?");
        const int steps = std::atoi(argv[3]);
        const outcome result = strategy == "with" ? run(argv[1], with, steps) : run(argv[1], without, steps);
        double checksum = 0;
        for (const float each : result.parameters[0]) checksum += static_cast<double>(each);
        std::printf("{\"computing\": %.9f, \"checksum\": %.17g, ", computing_time.seconds(), checksum);
        print("seconds", result.seconds, ", ");
        print("exchange", result.exchange, "}\n");
        if (argc == 5) write(argv[4], result);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
