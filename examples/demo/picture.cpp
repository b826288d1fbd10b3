#include "picture.hpp"

#include "../shared/chart.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace demo {

namespace {

shared::curve curve_of(const outcome& run) {
    const milestone& end = run.curve.back();
    shared::curve drawn{run.name + ": " + shared::spelled("%.2f", 100 * end.accuracy) + " %, " +
                        shared::spelled("%.0f", end.megabytes) + " MB"};
    for (const milestone& at : run.curve)
        drawn.points.push_back({at.megabytes, at.accuracy,
                                "step " + std::to_string(at.step) + ": " + shared::spelled("%.2f", 100 * at.accuracy) +
                                    " % after " + shared::spelled("%.1f", at.megabytes) + " MB"});
    return drawn;
}

/// Whole decades.
shared::axis megabytes_of(const std::vector<outcome>& runs) {
    double first = 9, last = -9;
    for (const outcome& run : runs)
        for (const milestone& at : run.curve) {
            first = std::min(first, std::floor(std::log10(at.megabytes)));
            last = std::max(last, std::ceil(std::log10(at.megabytes)));
        }
    shared::axis axis{.is_logarithmic = true, .low = std::pow(10, first), .high = std::pow(10, last)};
    for (double decade = first; decade <= last; ++decade)
        axis.marks.push_back({std::pow(10, decade), shared::spelled("%g", std::pow(10, decade))});
    axis.name = "megabytes sent per rank, headers included";
    return axis;
}

/// From a multiple of 5 % up to another one.
shared::axis accuracies_of(const std::vector<outcome>& runs) {
    shared::axis axis{.low = 1, .high = 0};
    for (const outcome& run : runs)
        for (const milestone& at : run.curve) {
            axis.low = std::min(axis.low, std::floor(at.accuracy * 20) / 20);
            axis.high = std::max(axis.high, std::ceil(at.accuracy * 20) / 20);
        }
    axis.high = std::max(axis.high, axis.low + 0.05);
    const double spacing = axis.high - axis.low > 0.4 ? 0.1 : 0.05;
    for (double accuracy = axis.high; accuracy > axis.low - 0.01; accuracy -= spacing)
        axis.marks.push_back({accuracy, shared::spelled("%.0f %%", 100 * accuracy)});
    return axis;
}

}  // namespace

std::string draw(const std::vector<outcome>& runs) {
    shared::chart chart{.title = "Fashion-MNIST: test accuracy against megabytes sent",
                        .across = megabytes_of(runs),
                        .up = accuracies_of(runs),
                        .curves = {},
                        .has_legend = false,
                        .colours = {"#b3541e", "#1f6fb2"}};
    for (const outcome& run : runs) chart.curves.push_back(curve_of(run));
    return shared::draw(chart);
}

}  // namespace demo
