// usage: bench_sparse_training_training PLAN RANKS BATCH STEPS SEED
//
// Trains the demo's perceptron on Fashion-MNIST among simulated ranks, by one of the plans below, and prints
// {"accuracy": of the test images, "bytes": sent by rank 0, mean of a step}.
#include "../../examples/demo/arguments.hpp"
#include "../../examples/demo/images.hpp"
#include "../../examples/demo/plans.hpp"

#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/compress/warming_top_k.hpp>
#include <rill/core/random.hpp>
#include <rill/system/sparcml.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

namespace train = rill::train;
namespace compress = rill::compress;

demo::images read_images(const std::string& folder) {
    const auto read = [&](const std::string& part) {
        const std::string prefix = folder + "/" + part;
        return train::read_idx_dataset(prefix + "-images-idx3-ubyte.gz", prefix + "-labels-idx1-ubyte.gz", 10);
    };
    return {.training = read("train"), .test = read("t10k")};
}

struct setting {
    demo::arguments chosen;
    demo::images data;

    /// The rates of all plans move as far as the demo's dense one: peak / (1 - momentum) is 1.
    train::warmup_cosine rate(double momentum) const { return demo::rate(1 - momentum, demo::steps_of(chosen, data)); }
};

struct outcome {
    double accuracy = 0;
    double bytes = 0;  ///< per step, of rank 0
};

template <class Plan>
outcome trained(const setting& of, const Plan& plan) {
    const rill::random_key key{of.chosen.seed};
    outcome result;
    rill::simulated::run(of.chosen.ranks, {}, [&](auto& net) {
        train::trainer trainer{
            net, train::perceptron<float>{{784, 512, 10}},
            train::minibatches{
                of.data.training,
                {.batch = of.chosen.batch, .rank = net.rank(), .ranks = net.size(), .key = key.derive(1)}},
            plan, train::trainer_options{.initial = key.derive(2), .group = {.seed = of.chosen.seed}}};
        const rill::traffic before = net.counted();
        for (std::uint64_t step = 0; step < of.chosen.steps; ++step)
            if (trainer.step().skipped()) throw std::runtime_error("a step was skipped");
        if (net.rank() != 0) return;
        result.bytes = static_cast<double>((net.counted() - before).bytes_sent) / static_cast<double>(of.chosen.steps);
        const auto& test = of.data.test;
        const auto right = train::count_correct(trainer.model(), trainer.parameters(), test, {0, test.rows});
        result.accuracy = static_cast<double>(right) / static_cast<double>(test.rows);
    });
    return result;
}

/// SparCML, Algorithm 1: a rank sends `keep` of each 512 entries, in 4 bits.
outcome of_buckets(const setting& of, std::size_t keep) {
    return trained(of, rill::systems::sparcml({.bits = 4, .source_bits = 4, .bucket = 512, .keep = keep}, train::sgd{},
                                              of.rate(0)));
}

/// Error feedback over a sparsifier, without rounding at the source.
template <class Sparsifier>
auto fed_back(const Sparsifier& sparsifier) {
    return compress::error_feedback{
        compress::encoded{sparsifier, compress::raw{}, compress::packed_gaps{}, compress::qsgd{.bits = 4}}};
}

template <class Codec>
outcome by(const setting& of, const Codec& codec, double momentum_of_optimizer, double momentum) {
    return trained(of, train::compressed_bsp{rill::topology::split_allgather{}, codec,
                                             train::sgd{.momentum = momentum_of_optimizer}, of.rate(momentum)});
}

outcome train_by(const std::string& plan, const setting& of) {
    constexpr double density = 0.001, momentum = 0.9;
    const compress::top_k few{.density = density};
    const compress::warming_top_k fewer{.density = density, .initial = 0.25, .operations = of.chosen.steps / 10};
    if (plan == "dense") return trained(of, demo::dense_strategy(of.chosen, of.data));
    if (plan == "bucket_16") return of_buckets(of, 16);
    if (plan == "bucket_8") return of_buckets(of, 8);
    if (plan == "few") return by(of, fed_back(few), 0, 0);
    if (plan == "few_momentum") return by(of, fed_back(few), momentum, momentum);
    if (plan == "few_corrected") return by(of, compress::momentum_correction{fed_back(few), momentum}, 0, momentum);
    if (plan == "few_warm") return by(of, fed_back(fewer), 0, 0);
    if (plan == "few_corrected_warm")
        return by(of, compress::momentum_correction{fed_back(fewer), momentum}, 0, momentum);
    throw std::invalid_argument("unknown plan " + plan);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s PLAN RANKS BATCH STEPS SEED\n", argv[0]);
        return 2;
    }
    try {
        setting of;
        of.chosen.ranks = std::atoi(argv[2]);
        of.chosen.batch = std::strtoull(argv[3], nullptr, 10);
        of.chosen.steps = std::strtoull(argv[4], nullptr, 10);
        of.chosen.seed = std::strtoull(argv[5], nullptr, 10);
        of.data = read_images(of.chosen.data);
        const outcome done = train_by(argv[1], of);
        std::printf("{\"accuracy\": %.4f, \"bytes\": %.0f}\n", done.accuracy, done.bytes);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
