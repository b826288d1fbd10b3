// Softmax regression on Fashion-MNIST to one loss, on 16 simulated ranks whose gradients take random times: seconds of
// virtual time until rank 0's model has the loss. `bench_rna_training SYSTEM C T SLOW RATE SEED LOSS [FOLDER]` prints
// JSON. C: the least time of a gradient in ms, T: of a ring all_reduce of the gradient; SLOW: what the second half of
// the ranks takes more.
#include "waits.hpp"

#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/system/ad_psgd.hpp>
#include <rill/system/eager_sgd.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/grouped_replica.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/softmax_regression.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill::straggler;
using rill::simulated::endpoint;
using rill::train::constant_rate;
using rill::train::sgd;

constexpr int ranks = 16, classes = 10;
constexpr std::size_t batch = 32;
constexpr std::uint64_t most_steps = 8000;
constexpr double lost = 100;  ///< a loss from which no training comes back

struct job {
    std::string system;
    double compute_ms, exchange_ms, slow_ms, rate;
    std::uint64_t seed;
    double loss;
    rill::train::dataset training, test;
};

/// A model whose gradients take the time that the network gives.
class slow_softmax : public rill::train::softmax_regression<float> {
  public:
    slow_softmax(endpoint& net, const rill::train::dataset& data)
        : softmax_regression(data.columns, static_cast<std::size_t>(data.classes)), net_(&net) {}

    double gradient(std::span<const float> parameters, const rill::train::batch& images, std::span<float> output) {
        net_->compute(1);
        return softmax_regression::gradient(parameters, images, output);
    }

  private:
    endpoint* net_;
};

rill::simulated::network network_of(const job& of, std::size_t dimension) {
    const rna_bench::task task{.from = of.compute_ms, .to = of.compute_ms + 50, .second_half = of.slow_ms};
    const double steps = 2 * (ranks - 1), bytes = static_cast<double>(4 * dimension) / ranks;
    return {.latency = {},
            .bandwidth = static_cast<std::uint64_t>(steps * bytes / (of.exchange_ms / 1000)),
            .computing = [=, seed = of.seed](rill::rank_t rank, std::uint64_t gradient, double) {
                rill::random_sequence draw(rill::random_key{seed}.derive(rank, gradient));
                return rill::nanoseconds(static_cast<std::int64_t>(task.draw(draw, rank, ranks) * 1e6));
            }};
}

/// What was reached, and when.
struct outcome {
    double seconds = 0, gradients = 0, rounds = 0, loss = 0, accuracy = 0;
};

/// The loss of a model, which ranks with equal models compute once.
class judge {
  public:
    explicit judge(const job& of) : of_(&of), model_(of.training.columns, classes) {
        rows_.resize(std::min<std::size_t>(5000, of.training.rows));
        std::iota(rows_.begin(), rows_.end(), 0U);
    }
    std::size_t dimension() const { return model_.dimension(); }
    double loss(std::uint64_t version, std::span<const float> parameters) {
        if (version != version_) loss_ = model_.loss(parameters, {of_->training, rows_});
        version_ = version;
        return loss_;
    }
    double accuracy(std::span<const float> parameters) { return rill::train::accuracy(model_, parameters, of_->test); }

  private:
    const job* of_;
    rill::train::softmax_regression<float> model_;
    std::vector<std::uint32_t> rows_{};
    std::uint64_t version_ = 0;
    double loss_ = 0;
};

/// Trains on one rank with the trainer that `make(net, model, batches, options)` returns, until a model that it judges
/// has the loss. `version(trainer)`: of its parameters; `judges`: whether this rank decides when the run ends.
template <class Make, class Version>
void train_rank(endpoint& net, const job& of, judge& judged, outcome& reached, bool judges, Make&& make,
                Version&& version_of) {
    auto trainer = make(
        net, slow_softmax(net, of.training),
        rill::train::minibatches{of.training, {.batch = batch, .rank = net.rank(), .ranks = ranks, .key = {of.seed}}},
        rill::train::trainer_options{.group = {.timeout = rill::seconds(1000), .seed = of.seed}});
    std::uint64_t next = 10;
    while (trainer.step()) {
        reached.gradients += reached.seconds == 0 ? 1 : 0;
        const std::uint64_t version = version_of(trainer);
        if (!judges || version < next) continue;
        next = version + 10;
        const double found = judged.loss(version, trainer.parameters());
        const double loss = found < lost ? found : lost;  // also where it is no number
        if (loss > of.loss && loss < lost && version < most_steps) continue;
        judges = false;
        trainer.end();
        if (reached.seconds > 0) continue;
        reached.seconds = (net.now() - rill::time_point{}).seconds();
        reached.rounds = static_cast<double>(version);
        reached.loss = loss;
        reached.accuracy = judged.accuracy(trainer.parameters());
    }
}

template <class Plan>
outcome in_lockstep(const job& of, const Plan& plan) {
    outcome reached;
    judge judged(of);
    rill::simulated::run(ranks, network_of(of, judged.dimension()), [&](endpoint& net) {
        const auto make = [&](auto& on, auto model, auto batches, const auto& options) {
            return rill::train::trainer{on, std::move(model), std::move(batches), plan, options};
        };
        train_rank(net, of, judged, reached, true, make, [](auto& trainer) { return trainer.step_number(); });
    });
    return reached;
}

template <class Plan>
outcome without_barrier(const job& of, const Plan& plan) {
    outcome reached;
    judge judged(of);
    rill::simulated::run(ranks, network_of(of, judged.dimension()), [&](endpoint& net) {
        const auto make = [&](auto& on, auto model, auto batches, const auto& options) {
            return rill::train::asynchronous_trainer{on, std::move(model), std::move(batches), plan, options};
        };
        train_rank(net, of, judged, reached, net.rank() == 0, make, [](auto& trainer) { return trainer.version(); });
    });
    return reached;
}

/// Partial rounds that move the model by the sum of what counts, each gradient at the job's rate over P: with all ranks
/// in a round that is a step of the barrier's descent.
template <class Start, class Age, class Sum>
outcome in_rounds(const job& of, const Start& start, const Age& age, const Sum& sum) {
    const rill::train::descent move{sgd{}, constant_rate{of.rate / ranks}};
    return without_barrier(of, rill::train::partial_replica{rill::topology::ring{}, start, age, sum, move});
}

/// RNA in a group of fast ranks and one of slow ones.
template <class Shared>
outcome in_groups(const job& of, const Shared& shared) {
    outcome reached;
    judge judged(of);
    rill::simulated::run(ranks, network_of(of, judged.dimension()), [&](endpoint& net) {
        rill::train::grouping groups{.every = 4};
        const int slow = 2 * net.rank() / ranks;
        for (int each = 0; each < ranks / 2; ++each) groups.alike.members.push_back(slow * ranks / 2 + each);
        const rill::train::descent move{sgd{}, constant_rate{of.rate / ranks}};
        const rill::train::partial_replica within{rill::topology::ring{}, two_choices{2}, bounded{16}, linear_mean{},
                                                  move};
        const rill::train::grouped_replica plan{within, groups, shared};
        const auto make = [&](auto& on, auto model, auto batches, const auto& options) {
            return rill::train::asynchronous_trainer{on, std::move(model), std::move(batches), plan, options};
        };
        train_rank(net, of, judged, reached, net.rank() == 0, make, [](auto& trainer) { return trainer.version(); });
    });
    return reached;
}

outcome run(const job& of) {
    if (of.system == "bsp") return in_lockstep(of, rill::systems::psgd(sgd{}, constant_rate{of.rate}));
    if (of.system == "rna") return in_rounds(of, two_choices{2}, bounded{16}, linear_mean{});
    if (of.system == "rna_sum") return in_rounds(of, two_choices{2}, bounded{16}, plain_sum{});
    if (of.system == "rna_fresh") return in_rounds(of, two_choices{2}, bounded{4}, linear_mean{});
    if (of.system == "eager") return in_rounds(of, majority{}, in_step{}, plain_sum{});
    if (of.system == "ad_psgd") return without_barrier(of, rill::systems::ad_psgd(sgd{}, constant_rate{of.rate}));
    if (of.system == "rna_groups") return in_groups(of, rill::aggregate::add{});
    if (of.system == "rna_groups_mean") return in_groups(of, rill::aggregate::mean_of_latest{});
    throw std::runtime_error("no system: " + of.system);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 8) {
        std::fprintf(stderr, "usage: bench_rna_training SYSTEM C T SLOW RATE SEED LOSS [FOLDER]\n");
        return 2;
    }
    try {
        const std::string folder = count > 8 ? arguments[8] : "/usr/share/datasets/fashion-mnist";
        const auto number = [&](int i) { return std::strtod(arguments[i], nullptr); };
        const auto images = [&](const char* part) {
            return rill::train::read_idx_dataset(folder + "/" + part + "-images-idx3-ubyte.gz",
                                                 folder + "/" + part + "-labels-idx1-ubyte.gz", classes);
        };
        const outcome reached = run({.system = arguments[1],
                                     .compute_ms = number(2),
                                     .exchange_ms = number(3),
                                     .slow_ms = number(4),
                                     .rate = number(5),
                                     .seed = std::strtoull(arguments[6], nullptr, 10),
                                     .loss = number(7),
                                     .training = images("train"),
                                     .test = images("t10k")});
        std::printf("{\"seconds\": %.6g, \"rounds\": %.6g, \"gradients\": %.6g, \"loss\": %.6g, \"accuracy\": %.6g}\n",
                    reached.seconds, reached.rounds, reached.gradients, reached.loss, reached.accuracy);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_rna_training: %s\n", failed.what());
        return 1;
    }
}
