// Values that a worker sends and receives in a round, without headers, of systems that train: counted, and what they
// are by definition; and what a coordinator and a worker tell each other, in bytes. `bench_gossip_traffic ROUNDS`
// prints JSON.
#include "../shared/expected.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/compress/difference.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using rill::simulated::endpoint;

constexpr int ranks = 32;
constexpr std::size_t dimension = 32'000, kept = 32;

int rounds = 10;
const char* before = "{";

/// What one rank's rounds are counted as, and what they should be.
struct count {
    double values = 0, formula = 0;

    void add(const rill::traffic& wire) {
        const auto bytes = static_cast<double>(wire.bytes_sent + wire.bytes_received);
        const auto messages = static_cast<double>(wire.messages_sent + wire.messages_received);
        values += (bytes - messages * static_cast<double>(rill::wire::header_bytes)) / sizeof(float);
    }
};

/// `worst`: how many values a rank has too many or too few.
void print(const char* name, const count& all, double worst) {
    const double share = 1.0 / ranks / rounds;
    std::printf("%s\"%s\": {\"values\": %.10g, \"formula\": %.10g, \"worst\": %.10g}", before, name, all.values * share,
                all.formula * share, worst);
    before = ",\n";
}

/// `body(net, count)` makes all rounds of a rank and adds them up.
template <class Body>
void measure(const char* name, Body&& body) {
    count all;
    double worst = 0;
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        count own;
        body(net, own);
        worst = std::max(worst, std::abs(own.values - own.formula));
        all.values += own.values;
        all.formula += own.formula;
    });
    print(name, all, worst);
}

template <class Mix>
void measure_gossip(const char* name, const Mix& mixing, double density, double values_per_entry) {
    measure(name, [&](endpoint& net, count& own) {
        rill::group workers{net, rill::topology::ring{}};
        rill::gossip replica{workers, mixing};
        auto mask = rill::compress::random_mask{.density = density}.bind(dimension);
        std::vector<float> model(dimension, static_cast<float>(net.rank()));
        for (int round = 0; round < rounds; ++round) {
            own.add(replica.mix(model, mask).wire);
            own.formula += values_per_entry * static_cast<double>(mask.coded_dimension());
        }
    });
}

/// k pairs of coordinate and value, to and from each neighbour in a ring.
void measure_differences() {
    measure("dcd", [](endpoint& net, count& own) {
        rill::group workers{net, rill::topology::ring{}};
        rill::gossip replica{workers, rill::topology::ring_neighbours{}};
        auto codec = rill::compress::difference{rill::compress::top_k{.count = kept}}.bind(dimension);
        std::vector<float> model(dimension);
        for (std::size_t i = 0; i < dimension; ++i) model[i] = static_cast<float>(net.rank()) + static_cast<float>(i);
        for (int round = 0; round < rounds; ++round) {
            own.add(replica.mix(model, codec).wire);
            own.formula += 4.0 * 2 * kept;
        }
    });
}

/// What a coordinator that does not train and a worker tell each other in a round, in bytes.
double coordination() {
    double bytes = 0;
    rill::simulated::run(1 + ranks, {}, [&](endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        const rill::traffic at_first = net.counted();
        rill::gossip saps{workers, rill::topology::random_matching{},
                          rill::coordinated{.rounds = static_cast<std::uint64_t>(rounds), .trains = false}};
        std::vector<float> model(dimension, 1);
        while (saps.next()) saps.mix(model);
        const rill::traffic after = net.counted();
        if (net.rank() == 0)
            bytes = static_cast<double>(after.bytes_sent - at_first.bytes_sent) +
                    static_cast<double>(after.bytes_received - at_first.bytes_received);
    });
    return bytes / ranks / rounds;
}

void measure_collectives() {
    measure("psgd", [](endpoint& net, count& own) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> gradient(dimension, 1), mean(dimension);
        for (int round = 0; round < rounds; ++round) {
            own.add(all_reduce(workers, gradient, mean, rill::aggregate::mean{}).wire);
            own.formula += 4.0 * dimension * (ranks - 1) / ranks;
        }
    });
    measure("top_k", [](endpoint& net, count& own) {  // where no two ranks choose the same coordinate
        rill::group workers{net, rill::topology::recursive_doubling{}};
        auto codec = rill::compress::top_k{.count = kept}.bind(dimension);
        std::vector<float> gradient(dimension), mean(dimension);
        std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(kept) * net.rank(), kept, 1.0F);
        for (int round = 0; round < rounds; ++round) {
            own.add(all_reduce(workers, gradient, mean, codec, rill::aggregate::mean{}).wire);
            own.formula += 4.0 * kept * (ranks - 1);
        }
    });
}

/// A root besides the ranks asks half of them; a round moves the model down and what the codec keeps of it up. Behind
/// an odd number of values lie four bytes of padding, which count as a value here.
template <class Codec>
count counted_rounds(std::size_t size, const Codec& codec) {
    count all;
    rill::simulated::run(1 + ranks, {}, [&](endpoint& net) {
        using namespace rill::straggler;
        rill::group workers{net, rill::topology::star{}};
        rill::rounds fed{workers, rill::topology::star{}, wait_all{}, fresh{}, solo{}, sampled{.fraction = 0.5}};
        auto kept_by = codec.bind(size);
        std::vector<float> model(size, 1), update(size);
        while (fed.next(model)) {
            const auto done = fed.reduce(model, update, kept_by, rill::aggregate::mean{}, {});
            if (!fed.is_root()) all.add(done.wire);
            if (fed.is_root())
                all.formula += 0.5 * ranks * static_cast<double>(size + (kept_by.coded_dimension() + 1) / 2 * 2);
            if (fed.is_root() && fed.number() == static_cast<std::uint64_t>(rounds)) fed.end();
        }
    });
    return all;
}

/// The headers of rounds have lists behind them, as long for any model: what a model of two numbers has too much.
template <class Codec>
void measure_rounds(const char* name, const Codec& codec) {
    const count headers = counted_rounds(2, rill::compress::keep_all{});
    count all = counted_rounds(dimension, codec);
    all.values -= headers.values - headers.formula;
    print(name, all, std::abs(all.values - all.formula));
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count > 1) rounds = std::atoi(arguments[1]);
        measure_collectives();
        measure_gossip("d_psgd", rill::topology::ring_neighbours{}, 1, 4);
        measure_gossip("saps", rill::topology::random_matching{}, 0.01, 2);
        measure_gossip("gossip_grad", rill::topology::rotating{}, 1, 2);
        measure_gossip("exponential", rill::topology::exponential{}, 1, 2);
        measure_differences();
        measure_rounds("fed_avg", rill::compress::keep_all{});
        measure_rounds("s_fed_avg", rill::compress::random_mask{.density = 0.01});
        std::printf(",\n\"coordinator\": %.6g}\n", coordination());
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_traffic: %s\n", failed.what());
        return 1;
    }
}
