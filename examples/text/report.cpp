#include "report.hpp"

#include "../shared/chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace text {

namespace {

void write_run(std::ostream& out, const outcome& run) {
    out << "    \"" << run.name << "\": {\n"
        << "      \"accuracy\": " << run.end().accuracy << ",\n"
        << "      \"seconds\": " << run.end().seconds << ",\n"
        << "      \"steps\": " << run.end().step << ",\n"
        << "      \"megabytes\": " << run.end().megabytes << ",\n"
        << "      \"curve\": [";
    const char* separator = "\n";
    for (const milestone& at : run.curve) {
        out << separator << "        {\"step\": " << at.step << ", \"seconds\": " << at.seconds
            << ", \"loss\": " << at.loss << ", \"accuracy\": " << at.accuracy << ", \"megabytes\": " << at.megabytes
            << "}";
        separator = ",\n";
    }
    out << "\n      ]\n    }";
}

shared::curve curve_of(const outcome& run) {
    shared::curve drawn{run.name + ": " + shared::spelled("%.2f", 100 * run.end().accuracy) + " %"};
    for (const milestone& at : run.curve)
        drawn.points.push_back({at.seconds, at.loss,
                                "step " + std::to_string(at.step) + ": loss " + shared::spelled("%.4f", at.loss) +
                                    ", held-out accuracy " + shared::spelled("%.2f", 100 * at.accuracy) + " % after " +
                                    shared::spelled("%.1f", at.seconds) + " s"});
    return drawn;
}

/// From 0 to `most`, or a bit more, with about five marks.
shared::axis from_zero(double most, const std::string& name) {
    const double rough = std::max(most, 1e-9) / 5, decade = std::pow(10, std::floor(std::log10(rough)));
    double spacing = 10 * decade;
    for (const double each : {5.0, 2.0, 1.0})
        if (each * decade >= rough) spacing = each * decade;
    shared::axis axis{.low = 0, .high = spacing * std::ceil(most / spacing), .marks = {}, .name = name};
    for (int i = 0; spacing * i < axis.high + spacing / 2; ++i)
        axis.marks.push_back({spacing * i, shared::spelled("%g", spacing * i)});
    return axis;
}

}  // namespace

void print_samples(const arguments& chosen, const samples& data) {
    std::printf("%zu rows to train on, %zu held out, %zu columns, %d ranks\n", data.rows, data.unseen, data.columns,
                chosen.ranks);
}

void print_table(const std::vector<outcome>& runs) {
    std::printf("\n%-8s %12s %10s %16s %9s %9s\n", "", "held-out", "", "mean bytes per", "", "training");
    std::printf("%-8s %12s %10s %16s %9s %9s\n", "run", "accuracy", "loss", "rank and step", "steps", "seconds");
    for (const outcome& run : runs)
        std::printf("%-8s %10.2f %% %10.4f %16.0f %9llu %9.1f\n", run.name.c_str(), 100 * run.end().accuracy,
                    run.end().loss, run.end().megabytes * 1e6 / static_cast<double>(run.end().step),
                    static_cast<unsigned long long>(run.end().step), run.end().seconds);
}

std::string to_json(const arguments& chosen, const samples& data, const std::vector<outcome>& runs) {
    std::ostringstream out;
    out.precision(12);
    out << "{\n  \"ranks\": " << chosen.ranks << ",\n  \"batch\": " << chosen.batch << ",\n  \"rate\": " << chosen.rate
        << ",\n  \"seed\": " << chosen.seed << ",\n  \"rows\": " << data.rows << ",\n  \"held_out\": " << data.unseen
        << ",\n  \"held_out_positive\": " << data.positive << ",\n  \"columns\": " << data.columns
        << ",\n  \"runs\": {\n";
    const char* separator = "";
    for (const outcome& run : runs) {
        out << separator;
        write_run(out, run);
        separator = ",\n";
    }
    out << "\n  }\n}\n";
    return out.str();
}

std::string draw(const std::vector<outcome>& runs) {
    double seconds = 0, loss = 0;
    for (const outcome& run : runs)
        for (const milestone& at : run.curve) {
            seconds = std::max(seconds, at.seconds);
            loss = std::max(loss, at.loss);
        }
    shared::chart chart{.title = "Loss of the batches over seconds of training",
                        .across = from_zero(seconds, "seconds of training"),
                        .up = from_zero(loss, "loss"),
                        .curves = {}};
    for (const outcome& run : runs) chart.curves.push_back(curve_of(run));
    return shared::draw(chart);
}

}  // namespace text
