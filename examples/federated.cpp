// FedAvg: in each round half of twelve workers train the root's model on their own data, a few steps each, and upload
// by how much it has changed: all of it, a tenth that all choose alike (S-FedAvg), or the largest tenth with error
// feedback.
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ranks = 13, rounds = 60, local_steps = 5;
constexpr std::size_t parameters = 1000;

/// Worker k has so many points; their mean differs from that of the others.
double points_of(rill::rank_t rank) { return rank == 0 ? 0 : 10.0 * (1 + rank % 3); }
float center_of(rill::rank_t rank, std::size_t i) {
    return std::sin(static_cast<float>(i)) + 0.1F * static_cast<float>(rank % 3);
}

template <class Policy>
void fit(const char* name, const Policy& policy) {
    rill::traffic of_workers;
    std::vector<float> model(parameters);
    rill::simulated::run(ranks, {}, [&](rill::simulated::endpoint& net) {
        using namespace rill::straggler;
        rill::group workers{net, rill::topology::star{}};
        rill::rounds fed{workers, rill::topology::star{}, wait_all{}, fresh{}, solo{}, sampled{.fraction = 0.5}};
        auto codec = policy.bind(parameters);
        std::vector<float> own(parameters), change(parameters), update(parameters);
        while (fed.is_root() ? fed.next(model) : fed.next(own)) {
            const double points = points_of(net.rank());
            for (std::size_t i = 0; i < parameters && !fed.is_root(); ++i) {
                float x = own[i];
                for (int step = 0; step < local_steps; ++step) x -= 0.1F * (x - center_of(net.rank(), i));
                change[i] = static_cast<float>(points) * (x - own[i]);
            }
            const auto done = fed.reduce(change, update, codec, rill::aggregate::mean{}, {.weight = points});
            if (!fed.is_root()) {
                of_workers += done.wire;
                continue;
            }
            for (std::size_t i = 0; i < parameters; ++i) model[i] += update[i];
            if (fed.number() == rounds) fed.end();
        }
    });
    double error = 0;
    for (std::size_t i = 0; i < parameters; ++i) {
        double sum = 0, points = 0;
        for (rill::rank_t rank = 1; rank < ranks; ++rank) {
            sum += points_of(rank) * static_cast<double>(center_of(rank, i));
            points += points_of(rank);
        }
        error += std::abs(static_cast<double>(model[i]) - sum / points) / parameters;
    }
    const double each = static_cast<double>(rounds) * (ranks - 1);
    std::printf("%-13s %.3f from the best, per worker and round %4.0f bytes down, %4.0f up\n", name, error,
                static_cast<double>(of_workers.bytes_received) / each,
                static_cast<double>(of_workers.bytes_sent) / each);
}

int main() {
    using namespace rill::compress;
    fit("FedAvg", keep_all{});
    fit("S-FedAvg", random_mask{.density = 0.1});
    fit("with feedback", error_feedback{top_k{.density = 0.1}});
}
