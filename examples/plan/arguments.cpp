#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace plan {

namespace {

constexpr const char* purpose =
    "Predicts what a step of data-parallel training takes on a network that need not exist: all topologies of rill,\n"
    "dense and with compressed gradients, by the latency and the bandwidth of the ranks' cards. Counts every message\n"
    "of every rank, headers included, with the simulated network's own arithmetic; measures on this machine what\n"
    "selecting, coding and folding take. Says what to choose, and when not to compress, and prints the C++ for it.";

constexpr const char* more =
    "Stragglers, of the time that --compute gives as the mean:\n"
    "  none               all ranks take that time\n"
    "  uniform:SPREAD     between 1 - SPREAD and 1 + SPREAD times as long\n"
    "  exponential:TAIL   a share of 1 - TAIL is fixed, the rest is exponential (CodedReduce's model)\n"
    "  slow:RANKS:FACTOR  so many ranks take FACTOR times as long\n"
    "  trace:FILE         measured: a line of seconds for each rank; --compute is not looked at\n\n"
    "Examples:\n"
    "  rill_plan --ranks 1000 --bandwidth 1gbit --latency 50us --model-size 25M --density 0.01\n"
    "  rill_plan --ranks 64 --compute 120ms --stragglers exponential:0.3 --svg plan.svg\n"
    "  rill_plan --ranks 16 --model-size 407050 --gradients measured.f32 --csv plan.csv\n"
    "  rill_plan --ranks 16 --compute 35ms --stragglers uniform:0.7 --trigger two_choices:2\n"
    "  rill_plan --gossip --ranks 32 --bandwidth 5MB --model-size 25450 --density 0.01\n"
    "  rill_plan --coded --ranks 156 --model-size 120k --bandwidth 1gbit --compute 32ms --stragglers "
    "exponential:0.5\n\n"
    "Exit codes: 0 done; 1 a file that cannot be read or written, or --verify found another time; more than 1 wrong\n"
    "arguments.";

using units = std::vector<std::pair<std::string, double>>;

std::string in_small_letters(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// Reads a number with one of the `known` units, in any case: `1.5gbit` as 187500000. Keeps all digits. The B of bytes
/// is a capital: `100Mb` is refused, since some write it for bits.
CLI::Validator with_unit(const units& known, const std::string& name) {
    const auto convert = [known](std::string& text) -> std::string {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || !std::isfinite(number) || number < 0) return "'" + text + "' is no number";
        const std::string unit = end;
        std::string all;
        for (const auto& [name_of, factor] : known) {
            if (in_small_letters(unit) == in_small_letters(name_of)) {
                if (name_of.ends_with('B') && unit.ends_with('b')) {
                    const std::string one = text.substr(0, text.size() - unit.size()) + name_of.substr(0, 1);
                    return "'" + text + "' has two readings: " + one + "bit a second, or " + one + "B a second";
                }
                char exact[40];
                std::snprintf(exact, sizeof exact, "%.17g", number * factor);
                text = exact;
                return {};
            }
            all += (all.empty() ? "" : ", ") + (name_of.empty() ? "none" : name_of);
        }
        return "'" + text + "' needs one of the units " + all;
    };
    return {convert, name, "with a unit"};
}

const units time_units = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
const units rates = {{"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
const units counts = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};

void describe(CLI::App& app, arguments& chosen, double& size) {
    const CLI::Validator time = with_unit(time_units, "TIME"), rate = with_unit(rates, "RATE");
    app.add_option("--ranks", chosen.ranks, "how many exchange gradients [1000]")->check(CLI::Range(2, 4096));
    app.add_option("--bandwidth", chosen.bandwidth,
                   "of each rank's card, both ways at once: kbit, Mbit, Gbit, or kB, MB, GB a second [1gbit]")
        ->transform(rate)
        ->check(CLI::Range(1.0, 1e18));
    app.add_option("--latency", chosen.latency, "of a message [50us]")->transform(time)->check(CLI::Range(0.0, 1e6));
    app.add_option("--model-size", size, "parameters (float32): a number, or thousands k, millions M [25M]")
        ->transform(with_unit(counts, "COUNT"))
        ->check(CLI::Range(1.0, 4e9));
    app.add_option("--density", chosen.density, "share of its gradient that a rank sends, in (0, 1] [0.01]")
        ->check(CLI::Range(1e-9, 1.0))
        ->check([](const std::string& text) {
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? "'" + text + "' is no number" : std::string();
        });
    app.add_option(
           "--gradients", chosen.gradients,
           "file of one or more gradients, float32 one after the other: how much selections overlap is measured "
           "on them; without it, they are independent")
        ->check(CLI::ExistingFile);
    app.add_option("--compute", chosen.compute, "what a step takes a rank by itself, the mean; 0s: unknown [0s]")
        ->transform(time)
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--select", chosen.select,
                   "what choosing the entries takes a rank in each step [measured on this machine]")
        ->transform(time)
        ->check(CLI::Range(0.0, 1e6));
    app.add_option(
           "--fold", chosen.fold,
           "how fast a rank codes, decodes and folds what it sends and receives: kB, MB, GB a second [measured]")
        ->transform(rate)
        ->check(CLI::Range(1.0, 1e18));
    app.add_option("--stragglers", chosen.stragglers, "how ranks differ, see below [none]");
    app.add_option("--seed", chosen.seed, "of the stragglers' times [1]")->check([](const std::string& text) {
        return text.starts_with('-') ? "'" + text + "' is below 0" : std::string();
    });
    app.add_option("--code", chosen.code,
                   "prints the C++ of this row, say \"ring, top_k\", instead of that of the advised one");
    app.add_option("--trigger", chosen.trigger,
                   "predicts rounds that do not wait for all too, and who must be ready for them: all_ready, majority, "
                   "solo, two_choices:PROBES");
    app.add_option("--staleness", chosen.staleness,
                   "which gradients count in them: in_step, unbounded, bounded:ROUNDS [bounded:16]");
    app.add_option("--csv", chosen.csv, "file for the figures");
    app.add_option("--svg", chosen.svg, "file for a picture: speed-up against ranks");
    app.add_flag("--verify", chosen.verify,
                 "runs the recommended exchange in the simulated network and compares; for small plans");
    app.add_flag("--gossip", chosen.gossip,
                 "plans gossip by pairs over fast links instead: which links are fast enough, for models to come "
                 "together soonest; --bandwidth is that of the fastest of random links, (0, RATE]");
    app.add_option("--links", chosen.links,
                   "file of the links' speeds for --gossip, in MB a second: in each line those from one rank to all")
        ->check(CLI::ExistingFile);
    app.add_flag("--coded", chosen.coded,
                 "plans gradient codes over trees instead: depth, width and tolerated stragglers, and whether they "
                 "pay; --compute is a rank's time without redundancy");
}

}  // namespace

arguments read_arguments(int argc, char** argv) {
    arguments chosen;
    auto size = static_cast<double>(chosen.model_size);
    CLI::App app{purpose, "rill_plan"};
    app.footer(more);
    describe(app, chosen, size);
    try {
        app.parse(argc, argv);
        chosen.model_size = static_cast<std::size_t>(std::llround(size));
        if (chosen.verify && static_cast<double>(chosen.ranks) * size > 2e8)
            throw CLI::ValidationError("--verify",
                                       "holds all gradients at once: ranks x parameters at most 200 million");
        if (chosen.verify && !chosen.gradients.empty())
            throw CLI::ValidationError("--verify", "runs with random coordinates, not with those of --gradients");
        if (chosen.coded && (chosen.verify || !(chosen.csv + chosen.svg + chosen.gradients + chosen.code).empty()))
            throw CLI::ValidationError("--coded", "goes with none of --verify, --csv, --svg, --gradients and --code");
        if (!chosen.links.empty() && !chosen.gossip) throw CLI::ValidationError("--links", "needs --gossip");
        if (!chosen.links.empty() && app.count("--ranks") > 0)
            throw CLI::ValidationError("--links", "says how many ranks there are; leave --ranks away");
        if (chosen.gossip && (chosen.coded || chosen.verify || !chosen.trigger.empty() || chosen.stragglers != "none" ||
                              !(chosen.csv + chosen.svg + chosen.gradients + chosen.code).empty()))
            throw CLI::ValidationError("--gossip",
                                       "goes with none of --coded, --verify, --trigger, --stragglers, --csv, --svg, "
                                       "--gradients and --code");
        if (chosen.coded && chosen.compute == 0)
            throw CLI::ValidationError("--coded", "needs --compute: what stragglers take longer for");
        if (chosen.coded && !chosen.trigger.empty()) throw CLI::ValidationError("--trigger", "goes not with --coded");
        if (app.count("--staleness") > 0 && chosen.trigger.empty())
            throw CLI::ValidationError("--staleness", "needs --trigger");
        const bool is_traced = chosen.stragglers.rfind("trace:", 0) == 0;
        if (!chosen.trigger.empty() && chosen.compute == 0 && !is_traced)
            throw CLI::ValidationError("--trigger", "needs --compute: the time of which ranks take more or less");
        const bool needs_compute = chosen.stragglers != "none" && !is_traced;
        if (needs_compute && chosen.compute == 0)
            throw CLI::ValidationError("--stragglers", "needs --compute: the time of which they take more or less");
    } catch (const CLI::ParseError& stop) {
        std::exit(app.exit(stop));
    }
    return chosen;
}

}  // namespace plan
