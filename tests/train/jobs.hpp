// Small training jobs on all transports.
#pragma once

#include "samples.hpp"

#include <rill/collective/fusion.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/overlapped_bsp.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace jobs {

/// A model of three weights.
inline const std::vector<rill::layer> three{{"w", {0, 3}}};

inline constexpr rill::train::sgd with_momentum{.momentum = 0.9};
inline constexpr rill::train::warmup_cosine rate{.peak = 0.2, .warmup = 3, .total = 40};
inline constexpr rill::train::bsp dense_plan{rill::topology::ring{}, with_momentum, rate};
inline constexpr rill::train::compressed_bsp sparse_plan{
    rill::topology::split_allgather{},
    rill::compress::error_feedback{rill::compress::encoded{rill::compress::top_k{.density = 0.1}, rill::compress::raw{},
                                                           rill::compress::packed_gaps{},
                                                           rill::compress::qsgd{.bits = 4}}},
    with_momentum, rate};

inline constexpr rill::train::overlapped_bsp overlapped_plan{rill::topology::split_allgather{}, with_momentum, rate,
                                                             rill::train::no_clip{}, rill::fusion{.bytes = 200}};

/// Sends all of the small buckets and a quarter of the large ones.
struct codec_by_size {
    auto operator()(std::size_t, const rill::bucket& of) const {
        return rill::compress::error_feedback{rill::compress::top_k{.density = of.elements.size() < 50 ? 1.0 : 0.25}};
    }
};
inline constexpr rill::train::overlapped_bsp layered_plan{
    rill::topology::split_allgather{}, with_momentum,  rate, rill::train::no_clip{},
    rill::fusion{.bytes = 200},        codec_by_size{}};

template <class Visit>
void for_each_plan(Visit visit) {
    visit(dense_plan);
    visit(sparse_plan);
    visit(overlapped_plan);
    visit(layered_plan);
}

/// Runs `body(net)` as `ranks` ranks of each transport, one after the other.
template <class Body>
void on_transports(int ranks, Body body) {
    rill::in_process::run(ranks, body);
    rill::simulated::run(ranks, {}, body);
}

inline const rill::train::dataset& data() {
    static const rill::train::dataset made = random_dataset(240, 12, 3);
    return made;
}

/// The step and rank whose gradient is made invalid, and the value that is put there.
struct spoilt_step {
    rill::rank_t rank = rill::no_rank;
    std::uint64_t step = 0;
    std::size_t coordinate = 0;
    float value = std::numeric_limits<float>::quiet_NaN();
};

/// A perceptron whose gradient is made invalid on the given ranks.
class spoilt_perceptron {
  public:
    using scalar = float;
    using batch = rill::train::batch;

    spoilt_perceptron(rill::rank_t rank, std::vector<spoilt_step> faults) : rank_(rank), faults_(std::move(faults)) {}

    std::size_t dimension() const { return model_.dimension(); }
    std::span<const rill::layer> layers() const { return model_.layers(); }
    void initialise(std::span<float> parameters, rill::random_key key) const { model_.initialise(parameters, key); }
    double loss(std::span<const float> parameters, const batch& samples) { return model_.loss(parameters, samples); }
    double gradient(std::span<const float> parameters, const batch& samples, std::span<float> output) {
        return gradient(parameters, samples, output, [](std::size_t) {});
    }
    template <class Ready>
    double gradient(std::span<const float> parameters, const batch& samples, std::span<float> output, Ready ready) {
        const double loss = model_.gradient(parameters, samples, output, [&](std::size_t i) {
            for (const spoilt_step& f : faults_)
                if (f.rank == rank_ && f.step == step_ && layers()[i].part.contains(f.coordinate))
                    output[f.coordinate] = f.value;
            ready(i);
        });
        ++step_;
        return loss;
    }

  private:
    rill::train::perceptron<float> model_{{12, 9, 3}};
    rill::rank_t rank_;
    std::vector<spoilt_step> faults_;
    std::uint64_t step_ = 0;
};

/// A trainer with 8 images per rank and step. `seed` is the group's.
template <class Net, class Plan>
auto make_trainer(Net& net, const Plan& plan, std::vector<spoilt_step> faults = {}, std::uint64_t seed = 7) {
    return rill::train::trainer{
        net, spoilt_perceptron(net.rank(), std::move(faults)),
        rill::train::minibatches{data(), {.batch = 8, .rank = net.rank(), .ranks = net.size(), .key = {2}}}, plan,
        rill::train::trainer_options{.initial = {3}, .group = {.timeout = rill::seconds(20), .seed = seed}}};
}

template <class Trainer>
std::vector<float> copy_of_parameters(const Trainer& trainer) {
    return {trainer.parameters().begin(), trainer.parameters().end()};
}

}  // namespace jobs
