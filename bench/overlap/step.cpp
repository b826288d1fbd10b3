// Times training steps with and without overlap, on a perceptron of 8 equal layers whose computing time equals the time
// of its gradient exchange: the dense gradient's, or that of the entries that codecs keep. Prints the seconds of each
// step on the slowest rank as JSON.
#include <rill/collective/barrier.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/compressed_bsp.hpp>
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
#include <cstddef>
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
constexpr std::size_t layer_elements = width * (width + 1);
constexpr std::size_t layer_bytes = layer_elements * sizeof(float);
constexpr std::size_t dimension = layers * layer_elements;

// The forward pass takes a third of the computing time, because it has one product where the backward pass has two.
constexpr train::pace computing{.forward = rill::milliseconds(40), .backward = rill::milliseconds(80)};
constexpr rill::duration computing_time = computing.forward + computing.backward;

/// Links over which each rank sends so many bytes in the computing time.
constexpr rill::delays network_for(std::uint64_t bytes) {
    return {.latency = rill::microseconds(200),
            .bandwidth = bytes * 1'000'000'000 / static_cast<std::uint64_t>(computing_time.ns)};
}
/// Each rank sends 2 (P-1)/P of the dense gradient.
constexpr rill::delays dense_network = network_for(layers * layer_bytes * 2 * (ranks - 1) / ranks);

/// Codecs keep one entry in 16. Each rank sends (P-1)/P of its entries to their owners, then those that are in its part
/// of the union to P-1 ranks; with random supports the union holds 1 - (15/16)^4 = 0.228 of all entries.
constexpr double density = 1.0 / 16;
constexpr double union_density = 1 - (1 - density) * (1 - density) * (1 - density) * (1 - density);
constexpr rill::delays sparse_network = network_for(static_cast<std::uint64_t>(
    (density + union_density) * (ranks - 1) / ranks * static_cast<double>(2 * layers * layer_bytes)));

constexpr train::sgd descent{.momentum = 0.9};
constexpr train::constant_rate rate{0.01};
constexpr train::bsp without{rill::topology::split_allgather{}, descent, rate};
constexpr train::overlapped_bsp with{rill::topology::split_allgather{}, descent, rate, train::no_clip{},
                                     rill::fusion{.bytes = layer_bytes}};

constexpr std::size_t kept_of(std::size_t elements) {
    return static_cast<std::size_t>(density * static_cast<double>(elements));
}
constexpr auto codec_of_bucket = [](std::size_t, const rill::bucket& of) {
    return rill::compress::encoded{rill::compress::top_k{.count = kept_of(of.elements.size())}};
};
constexpr train::compressed_bsp compressed{rill::topology::split_allgather{},
                                           rill::compress::encoded{rill::compress::top_k{.count = kept_of(dimension)}},
                                           descent, rate};
constexpr train::overlapped_bsp layer_wise{rill::topology::split_allgather{},  descent,        rate, train::no_clip{},
                                           rill::fusion{.bytes = layer_bytes}, codec_of_bucket};

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

/// What a rank sends of its own gradient: parts of `elements` each send their `kept_of` largest; 0: all is sent.
void keep_part(std::vector<float>& gradient, std::size_t elements) {
    if (elements == 0) return;
    for (std::size_t begin = 0; begin < gradient.size(); begin += elements) {
        const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(begin);
        std::vector<float> part(first, first + static_cast<std::ptrdiff_t>(elements));
        bench::keep_largest(part, kept_of(elements));
        std::copy(part.begin(), part.end(), first);
    }
}

/// `coded`: the elements that a codec chooses from; 0: there is no codec.
template <class Plan>
outcome run(std::string_view transport, const Plan& plan, int steps, std::size_t coded = 0) {
    outcome result;
    const rill::delays network = coded == 0 ? dense_network : sparse_network;
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
        train::trainer_options{}.initial, steps + 1, [&](std::vector<float>& own) { keep_part(own, coded); });
    if (coded == dimension)  // after a step, rounding may choose another entry of nearly the same magnitude
        bench::require_within(result.parameters[0], due, 0.1F, "training");
    else
        bench::require_near(result.parameters[0], due, "training");
    return result;
}

outcome run(std::string_view transport, std::string_view strategy, int steps) {
    if (strategy == "without") return run(transport, without, steps);
    if (strategy == "with") return run(transport, with, steps);
    if (strategy == "compressed") return run(transport, compressed, steps, dimension);
    if (strategy == "layer_wise") return run(transport, layer_wise, steps, layer_elements);
    throw std::invalid_argument("no such strategy: " + std::string(strategy));
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
        std::fprintf(stderr, "usage: %s in_process|simulated without|with|compressed|layer_wise STEPS [TRACE]\n",
                     argv[0]);
        return 2;
    }
    try {
        const outcome result = run(argv[1], std::string_view(argv[2]), std::atoi(argv[3]));
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
