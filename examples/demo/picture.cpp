#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <sstream>

namespace demo {

namespace {

constexpr double width = 760, height = 460;
constexpr double left = 70, right = 730, top = 60, bottom = 400;
constexpr const char* colours[] = {"#b3541e", "#1f6fb2"};

std::string number(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// The ranges of the axes: whole decades of megabytes, accuracies from a multiple of 5 % up.
struct axes {
    double first_decade = 9, last_decade = -9;
    double lowest = 1, highest = 0;

    explicit axes(const std::vector<outcome>& runs) {
        for (const outcome& run : runs)
            for (const milestone& at : run.curve) {
                first_decade = std::min(first_decade, std::floor(std::log10(at.megabytes)));
                last_decade = std::max(last_decade, std::ceil(std::log10(at.megabytes)));
                lowest = std::min(lowest, std::floor(at.accuracy * 20) / 20);
                highest = std::max(highest, std::ceil(at.accuracy * 20) / 20);
            }
    }
    double x(double megabytes) const {
        return left + (right - left) * (std::log10(megabytes) - first_decade) / (last_decade - first_decade);
    }
    double y(double accuracy) const {
        return bottom - (bottom - top) * (accuracy - lowest) / std::max(highest - lowest, 0.05);
    }
};

void text(std::ostream& out, double x, double y, const char* anchor, const std::string& what,
          const char* more = "fill=\"#333\"") {
    out << "<text x=\"" << number(x, 1) << "\" y=\"" << number(y, 1) << "\" text-anchor=\"" << anchor << "\" " << more
        << ">" << what << "</text>\n";
}

void line(std::ostream& out, double x1, double y1, double x2, double y2, const char* colour) {
    out << "<line x1=\"" << number(x1, 1) << "\" y1=\"" << number(y1, 1) << "\" x2=\"" << number(x2, 1) << "\" y2=\""
        << number(y2, 1) << "\" stroke=\"" << colour << "\"/>\n";
}

void draw_grid(std::ostream& out, const axes& on) {
    for (double decade = on.first_decade; decade <= on.last_decade; ++decade) {
        const double megabytes = std::pow(10, decade);
        line(out, on.x(megabytes), top, on.x(megabytes), bottom, "#ddd");
        text(out, on.x(megabytes), bottom + 20, "middle", number(megabytes, std::max(0, static_cast<int>(-decade))));
    }
    const double spacing = on.highest - on.lowest > 0.4 ? 0.1 : 0.05;
    for (double accuracy = on.highest; accuracy > on.lowest - 0.01; accuracy -= spacing) {
        line(out, left, on.y(accuracy), right, on.y(accuracy), "#ddd");
        text(out, left - 8, on.y(accuracy) + 4, "end", number(100 * accuracy, 0) + " %");
    }
    text(out, (left + right) / 2, bottom + 44, "middle", "megabytes sent per rank, headers included");
}

void draw_run(std::ostream& out, const axes& on, const outcome& run, const char* colour) {
    out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2.5\" points=\"";
    for (const milestone& at : run.curve)
        out << number(on.x(at.megabytes), 1) << "," << number(on.y(at.accuracy), 1) << " ";
    out << "\"/>\n";
    for (const milestone& at : run.curve)
        out << "<circle cx=\"" << number(on.x(at.megabytes), 1) << "\" cy=\"" << number(on.y(at.accuracy), 1)
            << "\" r=\"3.5\" fill=\"" << colour << "\"><title>step " << at.step << ": " << number(100 * at.accuracy, 2)
            << " % after " << number(at.megabytes, 1) << " MB</title></circle>\n";
    const milestone& end = run.curve.back();
    const std::string style = std::string("fill=\"") + colour +
                              "\" font-weight=\"bold\" stroke=\"white\" stroke-width=\"5\" paint-order=\"stroke\"";
    text(out, on.x(end.megabytes), on.y(end.accuracy) - 12, "end",
         run.name + ": " + number(100 * end.accuracy, 2) + " %, " + number(end.megabytes, 0) + " MB", style.c_str());
}

}  // namespace

std::string draw(const std::vector<outcome>& runs) {
    const axes on(runs);
    std::ostringstream out;
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " " << height << "\" width=\""
        << width << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"13\">\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    text(out, left, 30, "start", "Fashion-MNIST: test accuracy against megabytes sent",
         "font-size=\"17\" font-weight=\"bold\" fill=\"#222\"");
    draw_grid(out, on);
    for (std::size_t i = 0; i < runs.size(); ++i) draw_run(out, on, runs[i], colours[i % std::size(colours)]);
    out << "</svg>\n";
    return out.str();
}

}  // namespace demo
