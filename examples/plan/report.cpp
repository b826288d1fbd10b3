#include "report.hpp"

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

std::string name_of(const row& which) { return which.topology + ", " + which.how.name; }

/// Why a smaller gradient would gain so little against `dense`.
std::string why_not(const arguments& chosen, const forecast& all, const row& dense, const row& sparse) {
    if (dense.exchange < 0.1 * dense.step)
        return "computing dominates: the exchange is " + percent(dense.exchange / dense.step) + " of a step";
    if (dense.latency > 0.5 * dense.exchange)
        return "latency dominates: " + percent(dense.latency / dense.exchange) +
               " of the exchange would be there without a byte";
    if (chosen.select > 0.5 * dense.exchange)
        return "choosing the entries takes " + percent(chosen.select / dense.exchange) + " of the exchange it saves on";
    if (all.union_share > 0.3)
        return "the gradients fill in: " + std::to_string(all.ranks) + " ranks together select " +
               percent(all.union_share) + " of the coordinates, which are sent back to all";
    return "the best of them sends " +
           percent(static_cast<double>(sparse.busiest_bytes) / static_cast<double>(dense.busiest_bytes)) +
           " of the bytes";
}

}  // namespace

void print_table(const arguments& chosen, const forecast& all) {
    std::printf("%d ranks, %.6g Mbit/s, latency %s; %zu parameters, density %g%s\n", all.ranks, chosen.bandwidth * 8e-6,
                time_text(chosen.latency).c_str(), chosen.model_size, chosen.density,
                chosen.gradients.empty() ? "" : ", overlap as measured");
    std::printf("all ranks together select %s of the coordinates\n", percent(all.union_share).c_str());
    if (all.before.alone > 0)
        std::printf("computing: %s a step, the slowest rank %s\n", time_text(all.before.alone).c_str(),
                    time_text(all.before.slowest).c_str());
    std::printf("\n%-19s %-26s %13s %13s %12s %9s\n", "topology", "compressor", "exchange", "step", "MB per rank",
                "speed-up");
    for (const row& each : all.rows)
        std::printf("%-19s %-26s %13s %13s %12.3f %9s\n", each.topology.c_str(), each.how.name,
                    time_text(each.exchange).c_str(), time_text(each.step).c_str(),
                    static_cast<double>(each.busiest_bytes) * 1e-6,
                    all.before.alone > 0 ? factor_text(each.speed_up).c_str() : "-");
}

void print_advice(const arguments& chosen, const forecast& all) {
    const row &dense = all.best(false), &compressed = all.best(true);
    std::printf("\n");
    if (!all.should_compress()) {
        std::printf("Do not compress: %s (%s a step).\n", name_of(dense).c_str(), time_text(dense.step).c_str());
        std::printf("The best that compresses, %s, is %s times as fast; %s.\n", name_of(compressed).c_str(),
                    factor_text(all.gain()).c_str(), why_not(chosen, all, dense, compressed).c_str());
    } else {
        std::printf("Compress: %s (%s a step), %s times as fast as the best that does not, %s.\n",
                    name_of(compressed).c_str(), time_text(compressed.step).c_str(), factor_text(all.gain()).c_str(),
                    dense.topology.c_str());
        if (compressed.exchange < 0.1 * compressed.step)
            std::printf("What is left is computing: the exchange is %s of a step.\n",
                        percent(compressed.exchange / compressed.step).c_str());
        else if (compressed.latency > 0.5 * compressed.exchange)
            std::printf("What is left is latency: %s of the exchange; a lower density gains nothing.\n",
                        percent(compressed.latency / compressed.exchange).c_str());
    }
    if (all.before.slowest > 1.1 * all.before.alone)
        std::printf("Waiting for the slowest rank costs %s of the step.\n",
                    percent((all.before.slowest - all.before.alone) / all.recommended().step).c_str());
}

std::string to_csv(const forecast& all) {
    std::ostringstream out;
    out.precision(9);
    out << "ranks,topology,compressor,exchange_s,latency_s,step_s,speed_up,busiest_bytes,all_bytes\n";
    for (const row& each : all.rows)
        out << all.ranks << ',' << each.topology << ",\"" << each.how.name << "\"," << each.exchange << ','
            << each.latency << ',' << each.step << ',' << each.speed_up << ',' << each.busiest_bytes << ','
            << each.all_bytes << '\n';
    return out.str();
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    if (!(file << text << std::flush)) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace plan
