#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>

namespace text {

namespace {

constexpr const char* purpose =
    "Trains a logistic model on sparse samples, on a thread per rank, as MPI-OPT does: the entries of the gradients\n"
    "are exchanged, and nothing is selected. Prints the accuracy on samples that are held out and the bytes that the\n"
    "transport counted, headers included; writes both as JSON and draws loss over seconds of training.\n"
    "examples/text/fetch makes the samples.";

constexpr const char* more =
    "Runs, one after the other on the same batches:\n"
    "  sparse  each step waits for its exchange\n"
    "  late    the exchange of a step runs while the next gradient is computed (staleness 1)\n"
    "  dense   the gradients are exchanged in full: the parameters of the run sparse, bit for bit\n\n"
    "Examples:\n"
    "  rill_linear                               the files that examples/text/fetch makes, one epoch\n"
    "  rill_linear --runs sparse dense --steps 20  how much does a dense step take?\n\n"
    "Exit codes: 0 done; 1 a file that cannot be read or written; more than 1 wrong arguments.";

void describe(CLI::App& app, arguments& chosen) {
    app.add_option("--train", chosen.train, "samples to train on, in LIBSVM's format, plain or gzip");
    app.add_option("--held-out", chosen.held_out, "samples to measure the accuracy on");
    app.add_option("--runs", chosen.runs, "see below")->check(CLI::IsMember({"sparse", "late", "dense"}));
    app.add_option("--ranks", chosen.ranks, "workers, each with a replica of the model and a part of the samples")
        ->check(CLI::Range(1, 256));
    app.add_option("--batch", chosen.batch, "rows per rank and step")->check(CLI::Range(1, 1 << 20));
    app.add_option("--epochs", chosen.epochs, "passes over the samples")->check(CLI::Range(1, 1000));
    app.add_option("--steps", chosen.steps, "that many steps in place of all epochs; 0: all");
    app.add_option("--rate", chosen.rate, "the peak of the learning rate, which rises and then falls to 0")
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", chosen.seed, "of the order of rows");
    app.add_option("--json", chosen.json, "file for the figures");
    app.add_option("--picture", chosen.picture, "file for the picture, SVG");
}

}  // namespace

arguments read_arguments(int argc, char** argv) {
    arguments chosen;
    CLI::App app{purpose, "rill_linear"};
    app.option_defaults()->always_capture_default();
    app.footer(more);
    describe(app, chosen);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& stop) {
        std::exit(app.exit(stop));
    }
    return chosen;
}

}  // namespace text
