// Linear models on sparse text, as in MPI-OPT: four ranks read a file of samples, each its own part, and exchange the
// entries of their gradients. The samples are paths of files in packages, their features 4-grams of bytes; the model
// tells the packages for developers (label +1) from the others.
#include <rill/rill.hpp>
#include <rill/train.hpp>
#include <rill/transport/in_process.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace train = rill::train;

constexpr int ranks = 4, shares = 5;  // the last part of the file is held out
constexpr std::size_t columns = 4096, steps = 200;

/// What rank 0 has found.
struct outcome {
    double accuracy = 0, bytes = 0;
};

template <class Loss, class Plan>
outcome fit(const std::string& path, const Plan& plan) {
    outcome seen;
    rill::in_process::run(ranks, [&](rill::in_process::endpoint& net) {
        const train::sparse_dataset data = train::read_libsvm(path, net.rank(), shares, {.columns = columns});
        train::trainer trainer{net, train::sparse_linear<Loss>(columns),
                               train::minibatches_of<train::sparse_dataset>{
                                   data, {.batch = 8, .key = rill::random_key{1}.derive(net.rank())}},
                               plan};
        rill::traffic wire;
        while (trainer.step_number() < steps) wire += trainer.step().exchange.wire;
        trainer.end();
        trainer.step();  // with staleness 1 the last exchange ends here
        if (net.rank() != 0) return;
        const train::sparse_dataset unseen = train::read_libsvm(path, ranks, shares, {.columns = columns});
        seen.accuracy = train::accuracy(trainer.model(), trainer.parameters(), unseen);
        seen.bytes = static_cast<double>(wire.bytes_sent) / steps;
    });
    return seen;
}

template <class Loss, class Plan>
void report(const char* name, const std::string& path, const Plan& plan) {
    const outcome seen = fit<Loss>(path, plan);
    std::printf("%-28s held-out accuracy %.2f, rank 0 sends %5.0f bytes a step\n", name, seen.accuracy, seen.bytes);
}

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s FILE\n", arguments[0]);
        return EXIT_FAILURE;
    }
    const std::string path = arguments[1];
    const rill::topology::split_allgather shape;
    const train::constant_rate rate{0.5};
    const rill::coding gaps{.indices = rill::index_coding::elias_fano};
    try {
        const train::bsp dense{shape, train::sgd{}, rate};
        const train::sparse_bsp sparse{shape, rill::stream_codings{gaps, gaps, gaps}, train::sgd{}, rate};
        train::sparse_bsp beside = sparse;
        beside.staleness = rill::straggler::bounded{1};
        report<train::logistic>("logistic, dense", path, dense);
        report<train::logistic>("logistic, sparse", path, sparse);
        report<train::logistic>("logistic, sparse, one late", path, beside);
        report<train::hinge>("hinge, sparse", path, sparse);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
