#include "report.hpp"

#include "code.hpp"
#include "text.hpp"

#include <rill/cost/readable_seconds.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace plan {

std::string time_text(double seconds) {
    const rill::cost::readable_seconds read = rill::cost::readable(seconds);
    char text[40];
    std::snprintf(text, sizeof text, "%.3f %s", read.value, read.unit);
    return text;
}

std::string percent(double share) {
    char text[40];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

namespace {

std::string factor_text(double factor) {
    char text[40];
    std::snprintf(text, sizeof text, "%.2f", factor);
    return text;
}

/// Why a smaller gradient would gain so little against `dense`.
std::string why_not(const forecast& all, const row& dense, const row& sparse) {
    if (dense.exchange < 0.1 * dense.step)
        return "computing dominates: what the network takes is " + percent(dense.exchange / dense.step) + " of a step";
    if (dense.latency > 0.5 * dense.exchange)
        return "latency dominates: " + percent(dense.latency / dense.exchange) +
               " of the exchange would be there without a byte";
    if (sparse.computing - dense.computing > 0.5 * (dense.exchange - sparse.exchange))
        return "it saves " + time_text(dense.exchange - sparse.exchange) + " of the exchange and computes " +
               time_text(sparse.computing - dense.computing) + " longer";
    if (all.union_share > 0.3)
        return "the gradients fill in: " + std::to_string(all.ranks) + " ranks together select " +
               percent(all.union_share) + " of the coordinates, which are sent back to all";
    return "the best of them sends " +
           percent(static_cast<double>(sparse.busiest_bytes) / static_cast<double>(dense.busiest_bytes)) +
           " of the bytes";
}

void print_assumptions(const arguments& chosen, const computing_costs& costs, const forecast& all) {
    if (costs.ranks > 0) {
        std::printf(
            "measured on this machine, with %d ranks of %zu parameters, each on a core of its own, and scaled to "
            "%d of %zu:\n",
            costs.ranks, costs.size, all.ranks, chosen.model_size);
#ifndef __OPTIMIZE__
        std::printf("  too long, as this program was built without optimisation; `./dev plan` builds it with\n");
#endif
    }
    std::printf("  selecting takes %s (%s), coding and folding %s; pass --select and --fold to change them\n",
                time_text(chosen.select.value_or(all.best(true).select)).c_str(), chosen.select ? "given" : "measured",
                chosen.fold ? ("a second for " + factor_text(*chosen.fold * 1e-9) + " GB (given)").c_str()
                            : (time_text(all.best(true).computing - all.best(true).select) + " (measured)").c_str());
}

}  // namespace

void print_table(const arguments& chosen, const computing_costs& costs, const forecast& all) {
    std::printf("%d ranks, %.6g Mbit/s, latency %s; %zu parameters, density %g%s\n", all.ranks, chosen.bandwidth * 8e-6,
                time_text(chosen.latency).c_str(), chosen.model_size, chosen.density,
                chosen.gradients.empty() ? "" : ", overlap as measured");
    std::printf("all ranks together select %s of the coordinates\n", percent(all.union_share).c_str());
    if (all.before.alone > 0)
        std::printf("computing: %s a step, the slowest rank %s\n", time_text(all.before.alone).c_str(),
                    time_text(all.before.slowest).c_str());
    print_assumptions(chosen, costs, all);
    std::printf("\n%-19s %-26s %13s %13s %13s %12s %9s\n", "topology", "compressor", "computing", "exchange", "step",
                "MB per rank", "speed-up");
    for (const row& each : all.rows)
        std::printf("%-19s %-26s %13s %13s %13s %12.3f %9s\n", each.topology.c_str(), each.how.name,
                    time_text(each.computing).c_str(), time_text(each.exchange).c_str(), time_text(each.step).c_str(),
                    static_cast<double>(each.busiest_bytes) * 1e-6,
                    all.before.alone > 0 ? factor_text(each.speed_up).c_str() : "-");
    std::printf("computing: what a rank selects, codes and folds; exchange: what the network takes; step: both%s\n",
                all.before.alone > 0 ? ", and the gradient of the slowest rank" : "");
    if (all.before.alone > 0)
        std::printf("speed-up: gradients a second of all %d ranks over those of one rank alone\n", all.ranks);
}

void print_advice(const forecast& all) {
    const row &dense = all.best(false), &compressed = all.best(true);
    std::printf("\n");
    if (!all.should_compress()) {
        std::printf("Do not compress: %s (%s a step).\n", dense.name().c_str(), time_text(dense.step).c_str());
        std::printf("The best that compresses, %s, is %s times as fast; %s.\n", compressed.name().c_str(),
                    factor_text(all.gain()).c_str(), why_not(all, dense, compressed).c_str());
    } else {
        std::printf("Compress: %s (%s a step), %s times as fast as the best that does not, %s.\n",
                    compressed.name().c_str(), time_text(compressed.step).c_str(), factor_text(all.gain()).c_str(),
                    dense.topology.c_str());
        if (compressed.exchange < 0.1 * compressed.step)
            std::printf("What is left is computing: the exchange is %s of a step.\n",
                        percent(compressed.exchange / compressed.step).c_str());
        else if (compressed.latency > 0.5 * compressed.exchange)
            std::printf("What is left is latency: %s of the exchange; a lower density gains nothing.\n",
                        percent(compressed.latency / compressed.exchange).c_str());
    }
}

void print_stragglers(const forecast& all) {
    const waiting& before = all.before;
    if (before.slowest <= 1.1 * before.alone) return;
    const row &advised = all.recommended(), &star = all.named("star, none");
    const double step = before.others + star.computing + star.exchange;
    std::printf(
        "\nWaiting for the slowest rank costs %s of the step. Rounds that go on without the last %d of the ranks\n"
        "take %s a step (whole gradients, by a star; what comes late is lost), %s times as fast as this step.\n",
        percent((before.slowest - before.alone) / advised.step).c_str(), before.left_out, time_text(step).c_str(),
        factor_text(advised.step / step).c_str());
    if (step < advised.step)
        std::printf("In C++:\n\n%s\n", code_of_rounds(before.left_out).c_str());
    else
        std::printf("They do not pay here.\n");
    std::printf("Gradient codes lose nothing: --coded plans them, for --stragglers exponential:TAIL.\n");
}

std::string to_csv(const forecast& all) {
    std::ostringstream out;
    out.precision(9);
    out << "ranks,topology,compressor,exchange_s,latency_s,step_s,speed_up,busiest_bytes,all_bytes,select_s,computing_"
           "s,advised\n";
    const row& advised = all.recommended();
    for (const row& each : all.rows)
        out << all.ranks << ',' << each.topology << ",\"" << each.how.name << "\"," << each.exchange << ','
            << each.latency << ',' << each.step << ',' << each.speed_up << ',' << each.busiest_bytes << ','
            << each.all_bytes << ',' << each.select << ',' << each.computing << ',' << (&each == &advised) << '\n';
    return out.str();
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    if (!(file << text << std::flush)) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace plan
