// Small training jobs without a barrier.
#pragma once

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <string>

namespace jobs {

/// A trainer of which the first `workers` ranks share the data, with 8 images per rank and step.
template <class Net, class Model, class Plan>
auto make_asynchronous(Net& net, const Model& model, const Plan& plan, int workers, std::uint64_t seed = 7) {
    return rill::train::asynchronous_trainer{
        net, model,
        rill::train::minibatches{data(), {.batch = 8, .rank = net.rank() % workers, .ranks = workers, .key = {2}}},
        plan, rill::train::trainer_options{.initial = {3}, .group = {.timeout = rill::seconds(20), .seed = seed}}};
}

/// Steps until this rank has computed `last` gradients and retires. Returns the final parameters.
template <class Trainer>
std::vector<float> retire_at(Trainer& trainer, std::uint64_t last) {
    while (trainer.step())
        if (trainer.step_number() == last) trainer.retire();
    return copy_of_parameters(trainer);
}

/// The final parameters of a simulated run up to step `last`, from the files of `from`, if any. Its own go to `to`.
template <class Make>
std::vector<float> run_to(std::uint64_t last, int ranks, const Make& make, const scratch_directory* from,
                          const scratch_directory& to) {
    std::vector<float> reached;
    rill::simulated::run(ranks, {}, [&](auto& net) {
        const std::string file = std::to_string(net.rank());
        auto trainer = make(net);
        if (from != nullptr) trainer.restore(rill::train::checkpoint::load(*from / file.c_str()), "run.");
        const auto own = retire_at(trainer, last);
        rill::train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(to / file.c_str());
        if (net.rank() == 0) reached = own;
    });
    return reached;
}

/// Whether a run of 9 steps ends with the same bits if it is saved and restored after 6 of them.
template <class Make>
bool resumes(int ranks, const Make& make) {
    const scratch_directory whole, half, rest;
    const auto through = run_to(9, ranks, make, nullptr, whole);
    return run_to(6, ranks, make, nullptr, half) != through && run_to(9, ranks, make, &half, rest) == through;
}

/// The loss over all images.
inline double loss_of(std::span<const float> parameters) {
    rill::train::minibatches all{data(), {.batch = data().rows, .rank = 0, .ranks = 1, .key = {2}}};
    return spoilt_perceptron(0, {}).loss(parameters, all.next());
}

/// Whether training without a barrier has lowered the loss. Not asked of threads, whose gradients are as old as the
/// machine's load makes them.
template <class Net>
bool has_learned(const Net&, double before, std::span<const float> after) {
    return !std::same_as<Net, rill::simulated::endpoint> || loss_of(after) < 0.95 * before;
}

}  // namespace jobs
