// usage: bench_sparse_training_fill_in RANKS STEPS...
//
// How full the sum of sparse gradients is, after Figures 1 and 7 of SparCML. Trains the demo's perceptron on 256 images
// a step for the last of STEPS. After each of STEPS it takes the gradients of 32 images on each of RANKS ranks at the
// same parameters, selects their largest entries, and counts the coordinates that the first 1, 2, 4, … RANKS ranks have
// together. Prints JSON: `measured`, a list for each of STEPS of a list for each density of the counts; `independent`,
// the same if ranks chose at random; `expected`, the coordinates of 512 that ranks with 1, 2, 4, … 64 random ones have.
#include "../../examples/demo/arguments.hpp"
#include "../../examples/demo/images.hpp"
#include "../../examples/demo/plans.hpp"

#include <rill/core/random.hpp>
#include <rill/core/serial.hpp>
#include <rill/cost/union_size.hpp>
#include <rill/kernel/select.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
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

constexpr std::array densities{0.001, 0.01, 0.03125, 0.1};
const std::vector<std::size_t> widths{784, 512, 10};
using counts = std::vector<std::vector<double>>;  ///< for each density, for 1, 2, 4, … ranks

train::dataset read_training(const std::string& folder) {
    return train::read_idx_dataset(folder + "/train-images-idx3-ubyte.gz", folder + "/train-labels-idx1-ubyte.gz", 10);
}

counts count_unions(const train::dataset& data, std::span<const float> parameters, int ranks, rill::random_key key) {
    train::perceptron<float> model{widths};
    std::vector<float> gradient(model.dimension());
    std::vector<std::uint32_t> selected(model.dimension());
    rill::kernel::select_scratch scratch;
    std::vector<std::vector<char>> chosen(densities.size(), std::vector<char>(model.dimension()));
    counts found(densities.size());
    for (rill::rank_t rank = 0; rank < ranks; ++rank) {
        train::minibatches batches{data, {.batch = 32, .rank = rank, .ranks = ranks, .key = key}};
        model.gradient(parameters, batches.next(), gradient);
        const bool is_power = ((rank + 1) & rank) == 0;
        for (std::size_t d = 0; d < densities.size(); ++d) {
            const auto k = static_cast<std::size_t>(densities[d] * static_cast<double>(gradient.size()));
            const std::size_t taken = rill::kernel::top_k(std::span<const float>(gradient), k,
                                                          std::span(selected).first(k), scratch, rill::serial{});
            for (const std::uint32_t i : std::span(selected).first(taken))
                if (gradient[i] != 0) chosen[d][i] = 1;
            if (is_power)
                found[d].push_back(static_cast<double>(std::count(chosen[d].begin(), chosen[d].end(), char{1})));
        }
    }
    return found;
}

std::vector<counts> measured(int ranks, const std::vector<std::uint64_t>& steps) {
    demo::arguments chosen;
    chosen.ranks = 1;
    chosen.batch = 256;
    chosen.steps = steps.back();
    demo::images data;
    data.training = read_training(chosen.data);
    const rill::random_key key{chosen.seed};
    std::vector<counts> found;
    rill::simulated::run(1, {}, [&](auto& net) {
        train::trainer trainer{
            net, train::perceptron<float>{widths},
            train::minibatches{data.training, {.batch = chosen.batch, .rank = 0, .ranks = 1, .key = key.derive(1)}},
            demo::dense_strategy(chosen, data), train::trainer_options{.initial = key.derive(2)}};
        for (const std::uint64_t last : steps) {
            while (trainer.step_number() < last) trainer.step();
            found.push_back(count_unions(data.training, trainer.parameters(), ranks, key.derive(3)));
        }
    });
    return found;
}

/// `columns` coordinates, of which 1, 2, 4, … `ranks` ranks have each with each of the densities.
counts by_chance(std::size_t columns, std::span<const double> each, int ranks) {
    counts expected;
    for (const double density : each) {
        expected.emplace_back();
        for (int r = 1; r <= ranks; r *= 2)
            expected.back().push_back(rill::cost::uniform_density{density}({0, columns}, r));
    }
    return expected;
}

void print(const counts& rows) {
    std::printf("[");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::printf(i > 0 ? ", [" : "[");
        for (std::size_t j = 0; j < rows[i].size(); ++j) std::printf(j > 0 ? ", %.2f" : "%.2f", rows[i][j]);
        std::printf("]");
    }
    std::printf("]");
}

void report(int ranks, const std::vector<std::uint64_t>& steps) {
    const std::size_t dimension = train::perceptron<float>{widths}.dimension();
    std::printf("{\"dimension\": %zu, \"densities\": [", dimension);
    for (std::size_t d = 0; d < densities.size(); ++d) std::printf(d > 0 ? ", %g" : "%g", densities[d]);
    std::printf("], \"measured\": [");
    const std::vector<counts> found = measured(ranks, steps);
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (i > 0) std::printf(", ");
        print(found[i]);
    }
    std::printf("], \"independent\": ");
    print(by_chance(dimension, densities, ranks));
    std::vector<double> of_512;
    for (double k = 1; k <= 64; k *= 2) of_512.push_back(k / 512);
    std::printf(", \"expected\": ");
    print(by_chance(512, of_512, ranks));
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) throw std::invalid_argument("usage: RANKS STEPS...");
        std::vector<std::uint64_t> steps;
        for (int i = 2; i < argc; ++i) steps.push_back(std::strtoull(argv[i], nullptr, 10));
        report(std::atoi(argv[1]), steps);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
