#include <rill/concept/objective.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

using namespace rill;

namespace {

/// The minimum that models Objective: the mean squared distance to the numbers of the batch.
class distance {
  public:
    using scalar = double;
    using batch = std::span<const double>;

    std::size_t dimension() const { return 1; }
    std::span<const layer> layers() const { return layers_; }
    void initialise(std::span<double> parameters, random_key key) const {
        parameters[0] = double{counter_rng(key).uniform(0)};
    }
    double loss(std::span<const double> w, batch samples) const {
        double sum = 0;
        for (double x : samples) sum += (w[0] - x) * (w[0] - x);
        return sum / static_cast<double>(samples.size());
    }
    double gradient(std::span<const double> w, batch samples, std::span<double> g) const {
        g[0] = 0;
        for (double x : samples) g[0] += 2 * (w[0] - x) / static_cast<double>(samples.size());
        return loss(w, samples);
    }

  private:
    std::vector<layer> layers_{{"mean", {0, 1}}};
};

template <Objective O>
double descend(O& objective, const typename O::batch& samples) {
    std::vector<typename O::scalar> w(objective.dimension()), g(w.size());
    objective.initialise(w, random_key{1});
    for (int step = 0; step < 50; ++step) {
        objective.gradient(w, samples, g);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.25 * g[i];
    }
    return w[0];
}

struct without_layers : distance {
    void layers() const;
};

}  // namespace

static_assert(Objective<distance>);
static_assert(!Classifier<distance>);
static_assert(!LayeredObjective<distance>);
static_assert(!Objective<without_layers>);

TEST_CASE("objective: an algorithm uses nothing beyond the concept") {
    distance objective;
    const std::vector<double> samples{1, 2, 6};
    CHECK(descend(objective, samples) == doctest::Approx(3));
}
