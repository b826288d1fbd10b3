#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace plan {

namespace {

constexpr double width = 800, height = 480;
constexpr double left = 70, right = 560, top = 60, bottom = 420;
constexpr const char* colours[] = {"#333333", "#8a6fb2", "#b3541e", "#1f6fb2", "#2a8a57"};

struct point {
    int ranks = 0;
    double speed_up = 0;
    std::string topology;
};
struct curve {
    std::string name;
    std::vector<point> points;
};

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

std::vector<curve> curves_of(const std::vector<forecast>& by_ranks) {
    std::vector<curve> all;
    for (const forecast& each : by_ranks)
        for (const row& r : each.rows) {
            auto at = std::find_if(all.begin(), all.end(), [&](const curve& c) { return c.name == r.how.name; });
            if (at == all.end()) at = all.insert(at, {r.how.name, {}});
            const double speed_up = each.before.alone > 0 ? r.speed_up : each.best(false).step / r.step;
            if (at->points.empty() || at->points.back().ranks != each.ranks)
                at->points.push_back({each.ranks, speed_up, r.topology});
            else if (at->points.back().speed_up < speed_up)
                at->points.back() = {each.ranks, speed_up, r.topology};
        }
    return all;
}

/// The ranges of the logarithmic axes: ranks, and speed-ups in whole powers of two.
struct axes {
    double least_ranks = 1e9, most_ranks = 0, lowest = 1e300, highest = 0;

    explicit axes(const std::vector<curve>& curves) {
        for (const curve& c : curves)
            for (const point& p : c.points) {
                least_ranks = std::min(least_ranks, static_cast<double>(p.ranks));
                most_ranks = std::max(most_ranks, static_cast<double>(p.ranks));
                lowest = std::min(lowest, p.speed_up);
                highest = std::max(highest, p.speed_up);
            }
        lowest = std::exp2(std::floor(std::log2(std::max(lowest, 1e-6))));
        highest = std::exp2(std::ceil(std::log2(std::max(highest, 2 * lowest))));
        most_ranks = std::max(most_ranks, least_ranks + 1);
    }
    double x(double ranks) const {
        return left + (right - left) * std::log(ranks / least_ranks) / std::log(most_ranks / least_ranks);
    }
    double y(double speed_up) const {
        return bottom - (bottom - top) * std::log(std::max(speed_up, lowest) / lowest) / std::log(highest / lowest);
    }
};

void text(std::ostream& out, double x, double y, const char* anchor, const std::string& what,
          const std::string& more = "fill=\"#333\"") {
    out << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" text-anchor=\"" << anchor << "\" " << more << ">"
        << what << "</text>\n";
}

void line(std::ostream& out, double x1, double y1, double x2, double y2) {
    out << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2) << "\" y2=\""
        << number(y2) << "\" stroke=\"#ddd\"/>\n";
}

void draw_grid(std::ostream& out, const axes& on, const std::vector<forecast>& by_ranks) {
    for (const forecast& each : by_ranks) {
        line(out, on.x(each.ranks), top, on.x(each.ranks), bottom);
        text(out, on.x(each.ranks), bottom + 20, "middle", std::to_string(each.ranks));
    }
    const double decades = std::log2(on.highest / on.lowest);
    const double step = std::exp2(std::ceil(decades / 10));
    for (double s = on.lowest; s <= on.highest * 1.001; s *= step) {
        line(out, left, on.y(s), right, on.y(s));
        text(out, left - 8, on.y(s) + 4, "end", number(s));
    }
    text(out, (left + right) / 2, bottom + 44, "middle", "ranks");
}

void draw_curve(std::ostream& out, const axes& on, const curve& c, std::size_t place) {
    const std::string colour = colours[place % std::size(colours)];
    out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2.5\" points=\"";
    for (const point& p : c.points) out << number(on.x(p.ranks)) << "," << number(on.y(p.speed_up)) << " ";
    out << "\"/>\n";
    for (const point& p : c.points)
        out << "<circle cx=\"" << number(on.x(p.ranks)) << "\" cy=\"" << number(on.y(p.speed_up))
            << "\" r=\"3.5\" fill=\"" << colour << "\"><title>" << p.ranks << " ranks, " << p.topology << ": "
            << number(p.speed_up) << "</title></circle>\n";
    const double y = top + 10 + 24 * static_cast<double>(place);
    out << "<rect x=\"" << number(right + 20) << "\" y=\"" << number(y - 10) << "\" width=\"12\" height=\"12\" fill=\""
        << colour << "\"/>\n";
    text(out, right + 38, y, "start", c.name);
}

}  // namespace

std::string draw(const std::vector<forecast>& by_ranks) {
    const std::vector<curve> curves = curves_of(by_ranks);
    const axes on(curves);
    std::ostringstream out;
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " " << height << "\" width=\""
        << width << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"13\">\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    const bool over_one = by_ranks.front().before.alone > 0;
    text(out, left, 30, "start",
         over_one ? "Speed-up over one rank, the best topology of each compressor"
                  : "Exchange: speed-up over the best that does not compress",
         "font-size=\"17\" font-weight=\"bold\" fill=\"#222\"");
    draw_grid(out, on, by_ranks);
    for (std::size_t i = 0; i < curves.size(); ++i) draw_curve(out, on, curves[i], i);
    out << "</svg>\n";
    return out.str();
}

}  // namespace plan
