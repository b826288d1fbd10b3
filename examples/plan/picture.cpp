#include "picture.hpp"

#include "../shared/chart.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace plan {

namespace {

/// The best topology of each compressor, by ranks.
std::vector<shared::curve> curves_of(const std::vector<forecast>& by_ranks) {
    std::vector<shared::curve> all;
    for (const forecast& each : by_ranks)
        for (const row& r : each.rows) {
            auto at = std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.name == r.how.name; });
            if (at == all.end()) at = all.insert(at, {r.how.name});
            const double speed_up = each.before.alone > 0 ? r.speed_up : each.best(false).step / r.step;
            const shared::point best{
                static_cast<double>(each.ranks), speed_up,
                std::to_string(each.ranks) + " ranks, " + r.topology + ": " + shared::spelled("%.4g", speed_up)};
            if (at->points.empty() || at->points.back().x != best.x)
                at->points.push_back(best);
            else if (at->points.back().y < speed_up)
                at->points.back() = best;
        }
    return all;
}

shared::axis ranks_of(const std::vector<forecast>& by_ranks) {
    shared::axis axis{.is_logarithmic = true, .low = 1e9, .high = 0, .name = "ranks"};
    for (const forecast& each : by_ranks) {
        axis.low = std::min(axis.low, static_cast<double>(each.ranks));
        axis.high = std::max(axis.high, static_cast<double>(each.ranks));
        axis.marks.push_back({static_cast<double>(each.ranks), std::to_string(each.ranks)});
    }
    axis.high = std::max(axis.high, axis.low + 1);
    return axis;
}

/// Whole powers of two, of which about ten have marks.
shared::axis speed_ups_of(const std::vector<shared::curve>& curves) {
    shared::axis axis{.is_logarithmic = true, .low = 1e300, .high = 0};
    for (const shared::curve& c : curves)
        for (const shared::point& p : c.points) {
            axis.low = std::min(axis.low, p.y);
            axis.high = std::max(axis.high, p.y);
        }
    axis.low = std::exp2(std::floor(std::log2(std::max(axis.low, 1e-6))));
    axis.high = std::exp2(std::ceil(std::log2(std::max(axis.high, 2 * axis.low))));
    const double step = std::exp2(std::ceil(std::log2(axis.high / axis.low) / 10));
    for (double s = axis.low; s <= axis.high * 1.001; s *= step) axis.marks.push_back({s, shared::spelled("%.4g", s)});
    return axis;
}

}  // namespace

std::string draw(const std::vector<forecast>& by_ranks) {
    const std::vector<shared::curve> curves = curves_of(by_ranks);
    const bool over_one = by_ranks.front().before.alone > 0;
    return shared::draw({.title = over_one ? "Speed-up over one rank, the best topology of each compressor"
                                           : "Exchange: speed-up over the best that does not compress",
                         .across = ranks_of(by_ranks),
                         .up = speed_ups_of(curves),
                         .curves = curves});
}

}  // namespace plan
