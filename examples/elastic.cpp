// Training goes on when a rank dies and when it comes back. The rank then gets the model from the others while they
// train. The network is simulated, so that the rank dies and comes back at the same step in every run.
#include <rill/protocol/elastic.hpp>
#include <rill/rill.hpp>
#include <rill/train/shares.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace {

/// The linear model y = weights · x. All members hold the same one.
struct model {
    std::vector<double> weights = std::vector<double>(8, 0.0);
    std::vector<double> latest = std::vector<double>(8, 0.0);  ///< the gradient of the latest step

    void step(const std::vector<double>& gradient) {
        latest = gradient;
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1 * gradient[i];
    }
    rill::buffer pack() const { return bytes_of(weights); }
    rill::buffer changes() const { return bytes_of(latest); }
    void unpack(rill::byte_view bytes) { weights = doubles_of(bytes); }
    void apply(rill::byte_view bytes) { step(doubles_of(bytes)); }

  private:
    static rill::buffer bytes_of(const std::vector<double>& values) {
        rill::buffer bytes(values.size() * sizeof(double));
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return bytes;
    }
    std::vector<double> doubles_of(rill::byte_view bytes) const {
        if (bytes.size() != weights.size() * sizeof(double)) throw std::runtime_error("a model of another size");
        std::vector<double> values(weights.size());
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

/// The data: element i of a row, from -1 to 1.
double feature(std::uint32_t row, std::size_t i) {
    return 2 * static_cast<double>(rill::mix64(row, i) >> 11U) / 9007199254740992.0 - 1;
}
/// The weights that the training has to find.
double wanted(std::size_t i) { return 1 + static_cast<double>(i); }

/// The gradient of the squared error, summed over some rows.
template <class Rows>
std::vector<double> gradient_of(const model& of, const Rows& rows) {
    std::vector<double> gradient(of.weights.size());
    for (const std::uint32_t row : rows) {
        double error = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) error += (of.weights[i] - wanted(i)) * feature(row, i);
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += 2 * error * feature(row, i);
    }
    return gradient;
}

}  // namespace

int main() {
    rill::simulated::network cluster;
    cluster.faults.faults = {rill::faults::kill(2).at(rill::milliseconds(55)),
                             rill::faults::restart(2).at(rill::milliseconds(60))};

    rill::simulated::run(4, cluster, [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, {.least = 2}};
        rill::train::shares rows{{.rows = 4000, .batch = 60, .rank = net.rank()}};
        model linear;
        std::uint32_t epoch = 0;
        while (team.step() < 400) {
            const rill::view& crew = team.settle(linear);  // the members; a newcomer gets the model here
            if (net.rank() == 0 && (team.step() == 0 || crew.epoch != epoch))
                std::printf("step %3llu: %zu members\n", static_cast<unsigned long long>(team.step()),
                            crew.members.size());
            epoch = crew.epoch;

            const auto own = share_of(rows, crew, team.step());
            const std::vector<double> gradient = gradient_of(linear, own);
            net.sleep_until(net.now() + rill::milliseconds(1));  // computing takes no virtual time by itself
            std::vector<double> mean(gradient.size());
            const bool done = team.attempt([&](auto& workers) {
                rill::all_reduce(workers, gradient, mean, rill::aggregate::mean{},
                                 {.weight = static_cast<double>(own.size())});
            });
            if (done) linear.step(mean);  // on all members, or on none
        }
        team.finish();
        double error = 0;
        for (std::size_t i = 0; i < linear.weights.size(); ++i) error += std::abs(linear.weights[i] - wanted(i));
        std::printf("rank %d, start %d: %zu members, error %.6f\n", net.rank(), net.restarts() + 1,
                    team.view().members.size(), error);
    });
}
