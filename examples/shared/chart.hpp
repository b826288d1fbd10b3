// Curves as a self-contained SVG: what the examples that draw pictures share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace shared {

/// `value` as printf writes it by `format`, which takes one double.
inline std::string spelled(const char* format, double value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// A value with what is written beside it.
struct mark {
    double at = 0;
    std::string label{};
};

/// From `low` to `high`, which differ, and with a line at each of its marks.
struct axis {
    bool is_logarithmic = false;
    double low = 0;
    double high = 1;
    std::vector<mark> marks{};
    std::string name{};

    /// Where a value is: 0 at `low`, 1 at `high`.
    double place(double value) const {
        if (!is_logarithmic) return (value - low) / (high - low);
        return std::log(std::max(value, low) / low) / std::log(high / low);
    }
};

struct point {
    double x = 0;
    double y = 0;
    std::string title{};  ///< what a reader is shown who points at it
};

struct curve {
    std::string name;
    std::vector<point> points{};
};

struct chart {
    std::string title;
    axis across;
    axis up;
    std::vector<curve> curves;
    bool has_legend = true;  ///< beside the curves; else each has its name at its end
    std::vector<std::string> colours{"#333333", "#8a6fb2", "#b3541e", "#1f6fb2", "#2a8a57"};
};

/// Draws one chart.
class chart_painter {
  public:
    explicit chart_painter(const chart& of) : of_(of), right_(of.has_legend ? 560 : 730) {}

    std::string draw() {
        const double width = right_ + (of_.has_legend ? 240 : 30);
        out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " 480\" width=\"" << width
             << "\" height=\"480\" font-family=\"sans-serif\" font-size=\"13\">\n"
             << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
        text(left, 30, "start", of_.title, "font-size=\"17\" font-weight=\"bold\" fill=\"#222\"");
        draw_grid();
        for (std::size_t i = 0; i < of_.curves.size(); ++i) draw_curve(i);
        out_ << "</svg>\n";
        return out_.str();
    }

  private:
    static constexpr double left = 70, top = 60, bottom = 420;
    static constexpr const char* grey = "fill=\"#333\"";

    static std::string number(double value) { return spelled("%.1f", value); }
    double x(double value) const { return left + (right_ - left) * of_.across.place(value); }
    double y(double value) const { return bottom - (bottom - top) * of_.up.place(value); }

    void text(double at_x, double at_y, const char* anchor, const std::string& what, const std::string& style) {
        out_ << "<text x=\"" << number(at_x) << "\" y=\"" << number(at_y) << "\" text-anchor=\"" << anchor << "\" "
             << style << ">" << what << "</text>\n";
    }
    void line(double x1, double y1, double x2, double y2) {
        out_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2) << "\" y2=\""
             << number(y2) << "\" stroke=\"#ddd\"/>\n";
    }

    void draw_grid() {
        for (const mark& each : of_.across.marks) {
            line(x(each.at), top, x(each.at), bottom);
            text(x(each.at), bottom + 20, "middle", each.label, grey);
        }
        for (const mark& each : of_.up.marks) {
            line(left, y(each.at), right_, y(each.at));
            text(left - 8, y(each.at) + 4, "end", each.label, grey);
        }
        text((left + right_) / 2, bottom + 44, "middle", of_.across.name, grey);
    }
    void draw_curve(std::size_t place) {
        const curve& drawn = of_.curves[place];
        const std::string& colour = of_.colours[place % of_.colours.size()];
        out_ << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2.5\" points=\"";
        for (const point& p : drawn.points) out_ << number(x(p.x)) << "," << number(y(p.y)) << " ";
        out_ << "\"/>\n";
        for (const point& p : drawn.points)
            out_ << "<circle cx=\"" << number(x(p.x)) << "\" cy=\"" << number(y(p.y)) << "\" r=\"3.5\" fill=\""
                 << colour << "\"><title>" << p.title << "</title></circle>\n";
        of_.has_legend ? name_beside(drawn, colour, place) : name_at_end(drawn, colour);
    }
    void name_beside(const curve& drawn, const std::string& colour, std::size_t place) {
        const double at = top + 10 + 24 * static_cast<double>(place);
        out_ << "<rect x=\"" << number(right_ + 20) << "\" y=\"" << number(at - 10)
             << "\" width=\"12\" height=\"12\" fill=\"" << colour << "\"/>\n";
        text(right_ + 38, at, "start", drawn.name, grey);
    }
    void name_at_end(const curve& drawn, const std::string& colour) {
        text(x(drawn.points.back().x), y(drawn.points.back().y) - 12, "end", drawn.name,
             "fill=\"" + colour + "\" font-weight=\"bold\" stroke=\"white\" stroke-width=\"5\" paint-order=\"stroke\"");
    }

    const chart& of_;
    double right_;
    std::ostringstream out_;
};

inline std::string draw(const chart& of) { return chart_painter(of).draw(); }

}  // namespace shared
