// Predicts step times and traffic of all topologies and compressors on a network, or step times of gradient codes, or
// how fast the models of a gossip come together, and says what to choose.
#include "arguments.hpp"
#include "code.hpp"
#include "coded.hpp"
#include "computing.hpp"
#include "forecast.hpp"
#include "gossip.hpp"
#include "partial.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "stragglers.hpp"

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr double tolerance = 0.05;  // the number of coordinates that several ranks select differs from its expectation

/// Predicts for all powers of two below the chosen number of ranks, and for that number.
std::vector<plan::forecast> for_picture(const plan::arguments& chosen, const plan::frequencies& overlap,
                                        const plan::computing_costs& costs, const plan::forecast& last) {
    std::vector<plan::forecast> all;
    for (int ranks = 2; ranks < chosen.ranks; ranks *= 2)
        all.push_back(plan::predict_all(chosen, overlap, costs, ranks));
    all.push_back(last);
    return all;
}

int verify(const plan::arguments& chosen, const plan::row& which) {
    const double seen = plan::simulate(chosen, which);
    const double off = std::abs(seen - which.exchange) / which.exchange;
    std::printf("\nsimulated: the exchange takes %.3f ms, predicted %.3f ms: %.2f %% off\n", seen * 1e3,
                which.exchange * 1e3, off * 100);
    if (off <= tolerance) return 0;
    std::fflush(stdout);
    std::fprintf(stderr, "rill_plan: expected at most %.0f %%\n", tolerance * 100);
    return 1;
}

/// Throws `wrong_argument` before anything is measured.
void require_valid(const plan::arguments& chosen) {
    plan::compute_model_of(chosen);
    if (chosen.coded) plan::exponential_share(chosen);
    if (!chosen.code.empty()) plan::require_row(chosen.code);
    if (!chosen.trigger.empty()) plan::require_policies(chosen);
}

int run(const plan::arguments& chosen) {
    require_valid(chosen);
    if (chosen.coded) {
        plan::print_coded(chosen);
        return 0;
    }
    if (chosen.gossip) {
        plan::print_gossip(chosen);
        return 0;
    }
    const plan::frequencies overlap = plan::measure_overlap(chosen);
    const plan::computing_costs costs = plan::costs_of(chosen);
    const plan::forecast all = plan::predict_all(chosen, overlap, costs, chosen.ranks);
    const plan::row& coded = chosen.code.empty() ? all.recommended() : all.named(chosen.code);
    plan::print_table(chosen, costs, all);
    plan::print_advice(all);
    std::printf("\nIn C++, %s:\n\n%s", coded.name().c_str(), plan::code_of(coded, chosen.density).c_str());
    plan::print_stragglers(all);
    if (!chosen.trigger.empty()) plan::print_partial(chosen, all);
    if (!chosen.csv.empty()) plan::write_text(chosen.csv, plan::to_csv(all));
    if (!chosen.svg.empty()) plan::write_text(chosen.svg, plan::draw(for_picture(chosen, overlap, costs, all)));
    return chosen.verify ? verify(chosen, all.recommended()) : 0;
}

int fail(const std::exception& problem, int exit_code) {
    std::fflush(stdout);  // what was printed before the error comes before it
    std::fprintf(stderr, "rill_plan: %s\n", problem.what());
    return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    const plan::arguments chosen = plan::read_arguments(argc, argv);
    try {
        return run(chosen);
    } catch (const plan::wrong_argument& problem) {
        return fail(problem, 2);
    } catch (const std::exception& problem) {
        return fail(problem, 1);
    }
}
