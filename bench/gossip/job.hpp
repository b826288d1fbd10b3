// What all trainings have in common: the images of each rank, the model, the learning rate.
#pragma once

#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/sampler.hpp>
#include <rill/train/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gossip_bench {

inline constexpr int ranks = 32, classes = 10;
inline constexpr std::size_t batch = 50, judged_images = 2000;
inline constexpr std::uint64_t judged_every = 10, all_steps = 750;
inline constexpr std::uint64_t epoch = 37;  ///< steps: once through the images of a rank

/// The rows of each of `ranks` ranks. Without `labels` a rank has as many consecutive rows as any other; else the rows
/// are sorted by label and cut into ranks x labels pieces, of which each rank gets `labels` at random.
inline std::vector<std::vector<std::uint32_t>> rows_by_rank(const rill::train::dataset& data, int labels,
                                                            std::uint64_t seed) {
    std::vector<std::uint32_t> rows(data.rows);
    std::iota(rows.begin(), rows.end(), 0U);
    if (labels > 0)
        std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return data.labels[a] < data.labels[b]; });
    const auto pieces = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(std::max(labels, 1));
    std::vector<std::size_t> order(pieces);
    std::iota(order.begin(), order.end(), std::size_t{0});
    rill::random_sequence random(rill::random_key{seed}.derive(7));
    for (std::size_t left = labels > 0 ? pieces : 0; left > 1; --left)
        std::swap(order[left - 1], order[static_cast<std::size_t>(random.below(left))]);
    std::vector<std::vector<std::uint32_t>> own(static_cast<std::size_t>(ranks));
    const std::size_t length = data.rows / pieces;
    for (std::size_t i = 0; i < pieces; ++i) {
        auto& to = own[i % own.size()];
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(order[i] * length);
        to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(length));
    }
    return own;
}

/// One rank's batches of its own rows, in a new order in each epoch.
class own_batches {
  public:
    own_batches(const rill::train::dataset& data, std::span<const std::uint32_t> rows, rill::random_key key)
        : data_(&data), rows_(rows), order_({.rows = rows.size(), .batch = batch, .key = key}), next_(batch) {}

    rill::train::batch next() {
        const auto places = order_.next();
        for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = rows_[places[i]];
        return {*data_, next_};
    }

  private:
    const rill::train::dataset* data_;
    std::span<const std::uint32_t> rows_;
    rill::train::sampler order_;
    std::vector<std::uint32_t> next_;
};

struct job {
    std::uint64_t steps = all_steps, seed = 1;
    rill::train::dataset training{}, test{};
    std::vector<std::vector<std::uint32_t>> rows{};
    rill::train::perceptron<float> model{{784, 32, classes}};  // of all ranks: they run in one thread

    job(std::uint64_t step_count, std::uint64_t first, int labels, const std::string& folder)
        : steps(step_count), seed(first), training(read(folder, "train")), test(read(folder, "t10k")) {
        rows = rows_by_rank(training, labels, seed);
    }

    rill::train::warmup_cosine rate() const { return {.peak = 0.25, .total = std::max(steps, all_steps)}; }
    rill::random_key key() const { return rill::random_key{seed}; }
    own_batches images_of(std::size_t rank) const { return {training, rows[rank], key().derive(1, rank)}; }
    std::vector<float> first_model() const {
        std::vector<float> parameters(model.dimension());
        model.initialise(parameters, key().derive(2));
        return parameters;
    }
    /// Also where FedAvg has averaged the models.
    bool is_judged(std::uint64_t step) const { return step % judged_every == 0 || step % epoch == 0 || step == steps; }

  private:
    static rill::train::dataset read(const std::string& folder, const char* part) {
        return rill::train::read_idx_dataset(folder + "/" + part + "-images-idx3-ubyte.gz",
                                             folder + "/" + part + "-labels-idx1-ubyte.gz", classes);
    }
};

}  // namespace gossip_bench
