#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>

namespace demo {

namespace {

constexpr const char* purpose =
    "Trains a perceptron (784-512-10, 407,050 parameters) on Fashion-MNIST twice, with the same images in the same\n"
    "order: once with the gradients sent in full (dense), once with SparCML's quantised top-k SGD\n"
    "(sparse). Prints the test accuracy and the bytes that the transport counted, headers included; writes both as\n"
    "JSON and draws accuracy against megabytes sent. The same arguments give the same accuracies and bytes,\n"
    "on every transport.";

constexpr const char* more =
    "Examples:\n"
    "  rill_demo                            the full comparison, some 30 s on two cores\n"
    "  rill_demo --density 0.002 --bits 2   how little can be sent?\n"
    "  rill_demo --keep 16 --bucket 512 --source-bits 4 --momentum 0   Algorithm 1 of the paper\n"
    "  rill_demo --ranks 16 --batch 16      more ranks, the same images per step\n"
    "  rill_demo --quick                    300 steps; fails unless both runs learn\n"
    "  mpirun -np 4 rill_demo --transport mpi   a process per rank\n"
    "  tools/launch -n 4 rill_demo --transport tcp   the same without MPI\n"
    "  rill_demo --topology auto            exchanges as is fastest here, and says why\n"
    "  rill_demo --elastic                  processes are killed, and the others go on\n\n"
    "Exit codes: 0 done; 1 no data, a file that cannot be written, or a run that did not learn; more than 1 wrong\n"
    "arguments.";

void describe(CLI::App& app, arguments& chosen) {
    app.add_option("--ranks", chosen.ranks, "workers, each with a replica of the model")->check(CLI::Range(2, 256));
    app.add_option("--batch", chosen.batch, "images per rank and step")->check(CLI::Range(1, 4096));
    app.add_option("--epochs", chosen.epochs, "passes over the 60,000 training images")->check(CLI::Range(1, 1000));
    app.add_option("--steps", chosen.steps, "that many steps in place of all epochs; 0: all");
    app.add_option("--density", chosen.density, "sparse: share of its gradient that a rank sends, in (0, 1]")
        ->check(CLI::Range(1e-6, 1.0));
    app.add_option("--bits", chosen.bits, "sparse: bits of each value in the second phase, where sums are sent back")
        ->check(CLI::IsMember({2, 4, 8}));
    app.add_option("--source-bits", chosen.source_bits,
                   "sparse: bits of each value that a rank contributes; 0: a float")
        ->check(CLI::IsMember({0, 2, 4, 8}));
    auto* bucket = app.add_option("--bucket", chosen.bucket,
                                  "sparse: sends --keep of each so many consecutive entries, in place of --density");
    auto* keep = app.add_option("--keep", chosen.keep, "sparse: the largest entries of each bucket that are sent");
    bucket->needs(keep);
    keep->needs(bucket);
    app.add_option("--momentum", chosen.momentum,
                   "sparse: of the optimizer, in [0, 1); the peak of the rate is 1 - momentum, as in the dense run")
        ->check(CLI::Range(0.0, 0.999));
    app.add_option("--topology", chosen.topology,
                   "who sends to whom; auto: what is measured to be the fastest, for each of the runs")
        ->check(CLI::IsMember(
            {"auto", "split_allgather", "recursive_doubling", "halving_doubling", "ring", "tree", "star"}));
    app.add_option("--seed", chosen.seed, "of the first parameters, the order of images and the rounding");
    auto* transport =
        app.add_option(
               "--transport", chosen.transport,
               "in_process: a thread per rank; simulated: one thread, virtual time; mpi: the processes that mpirun "
               "starts, without --ranks; tcp: those that tools/launch starts, without --ranks")
            ->check(CLI::IsMember({"in_process", "simulated", "mpi", "tcp"}));
    app.add_option("--data", chosen.data, "directory of the four files of Fashion-MNIST (or MNIST), *-ubyte.gz");
    app.add_option("--json", chosen.json, "file for the figures");
    app.add_option("--picture", chosen.picture, "file for the picture, SVG");
    app.add_flag("--quick", chosen.quick, "300 steps in place of all epochs; fails unless both runs learn");
    app.add_flag("--elastic", chosen.elastic,
                 "one dense run, in a process per rank, of which two are killed (kill -9) and one begins anew")
        ->excludes(transport);
}

}  // namespace

arguments read_arguments(int argc, char** argv) {
    arguments chosen;
    CLI::App app{purpose, "rill_demo"};
    app.option_defaults()->always_capture_default();
    app.footer(more);
    describe(app, chosen);
    try {
        app.parse(argc, argv);
        if (chosen.transport == "mpi" && app.count("--ranks") != 0)
            throw CLI::ValidationError("--ranks", "with --transport mpi, mpirun says how many");
        if (chosen.transport == "tcp" && app.count("--ranks") != 0)
            throw CLI::ValidationError("--ranks", "with --transport tcp, the launcher says how many");
        if (chosen.keep > chosen.bucket || (chosen.bucket > 0 && chosen.keep == 0))
            throw CLI::ValidationError("--keep", "at least 1 and at most the bucket");
        if (chosen.elastic && (chosen.ranks < 3 || chosen.ranks > 64))
            throw CLI::ValidationError("--ranks", "3 to 64 with --elastic");
        if (static_cast<std::size_t>(chosen.ranks) * chosen.batch > 60'000)
            throw CLI::ValidationError("--ranks, --batch", "together more than the 60,000 training images");
    } catch (const CLI::ParseError& stop) {
        std::exit(app.exit(stop));
    }
    return chosen;
}

}  // namespace demo
