// Seconds of a step of CodedReduce and of its baselines: rill's protocols in a simulated network, compared with a plain
// Monte Carlo simulation of the paper's models. `bench_coded_timing CASE` prints a case's figures as JSON.
#include "plain_model.hpp"
#include "protocols.hpp"

#include <rill/gradient_code/default_code.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using coded_bench::cluster;
using coded_bench::scheme;
using coded_bench::schemes;

/// A flat or nested object of numbers, in the order in which they are added.
class report {
  public:
    void open(const std::string& name) { begin(name + "\": {"), first_ = true; }
    void close() { text_ += "}", first_ = false; }
    void add(const std::string& name, double value) {
        char number[64];
        std::snprintf(number, sizeof number, "\": %.6g", value);
        begin(name + number);
    }
    void print() const { std::printf("{%s}\n", text_.c_str()); }

  private:
    void begin(const std::string& what) {
        text_ += (first_ ? "\"" : ", \"") + what;
        first_ = false;
    }
    std::string text_;
    bool first_ = true;
};

using seconds_of = std::map<scheme, double>;

/// Divides the number of rounds per figure and the entries of a gradient: 1 unless everything is only to run once.
int divisor = 1;

cluster divided(cluster of) {
    of.entries = std::max<std::size_t>(1, of.entries / static_cast<std::size_t>(divisor));
    return of;
}

double mean_of_plain(const cluster& of, scheme s, int rounds) {
    rounds = std::max(1, rounds / divisor);
    plain::simulation simulate(of.models, 1);
    double sum = 0;
    for (int i = 0; i < rounds; ++i) sum += coded_bench::plain_seconds(simulate, of, s);
    return sum / rounds;
}

double mean_of_protocol(const cluster& of, scheme s, int rounds) {
    rounds = std::max(1, rounds / divisor);
    double sum = 0;
    for (int i = 0; i < rounds; ++i) sum += coded_bench::round_seconds(divided(of), s, static_cast<std::uint64_t>(i));
    return sum / rounds;
}

seconds_of plain_seconds(const cluster& of, int rounds) {
    seconds_of all;
    for (const scheme each : schemes) all[each] = mean_of_plain(of, each, rounds);
    return all;
}

seconds_of protocol_seconds(const cluster& of, int rounds) {
    seconds_of all;
    for (const scheme each : schemes) all[each] = mean_of_protocol(of, each, rounds);
    return all;
}

void add_speedups(report& out, const char* name, const seconds_of& seconds) {
    out.open(name);
    for (const scheme each : schemes) out.add(coded_bench::name(each), seconds.at(each));
    for (const scheme each : schemes)
        if (each != scheme::coded)
            out.add(std::string("speedup_") + coded_bench::name(each), seconds.at(each) / seconds.at(scheme::coded));
    out.close();
}

/// Not in the paper: groups of workers, where one worker of each group is enough.
void add_groups(report& out, const cluster& of, int rounds) {
    rounds = std::max(1, rounds / divisor);
    out.open("groups");
    for (const scheme each : {scheme::gradient_code, scheme::coded}) {
        double sum = 0;
        for (int i = 0; i < rounds; ++i)
            sum += coded_bench::groups_seconds(divided(of), each, static_cast<std::uint64_t>(i));
        out.add(coded_bench::name(each), sum / rounds);
    }
    out.close();
}

/// The largest ratio, at least 1, between the speed-ups of two sets of seconds. The ring, for which the paper gives no
/// model, is left out.
double apart(const seconds_of& a, const seconds_of& b) {
    double worst = 1;
    for (const scheme each : {scheme::star, scheme::gradient_code, scheme::sgd}) {
        const double ratio = a.at(each) / a.at(scheme::coded) / (b.at(each) / b.at(scheme::coded));
        worst = std::max({worst, ratio, 1 / ratio});
    }
    return worst;
}

/// The paper's simulated neural network: its own parameters, and 120,000 floats.
const cluster neural{.tree = {.width = 12, .depth = 2, .stragglers = 5},
                     .points = 49'920,
                     .models = {.shift = 5e-5, .tail = 5e-5, .gradient = 0.05},
                     .entries = 60'000};

/// The ring's time relative to CodedReduce's, by the plain models.
double ratio_to_ring(const cluster& of, int rounds) {
    return mean_of_plain(of, scheme::ring, rounds) / mean_of_plain(of, scheme::coded, rounds);
}

/// The least value of a parameter at which CodedReduce is faster than the ring, by the plain models.
template <class Set>
double crossing(Set&& set, double high) {
    double low = 0;
    for (int i = 0; i < 30; ++i) {
        const double middle = (low + high) / 2;
        cluster with = neural;
        set(with.models, middle);
        (ratio_to_ring(with, 2000) > 1 ? high : low) = middle;
    }
    return high;
}

void neural_net(report& out) {
    const seconds_of plain = plain_seconds(neural, 20'000), real = protocol_seconds(neural, 30);
    add_speedups(out, "plain", plain);
    add_speedups(out, "rill", real);
    out.add("apart", apart(real, plain));
    add_groups(out, neural, 20);
    out.open("sequence");  // rounds in a row: a late rank begins its next round late
    for (const scheme each : schemes)
        if (each != scheme::ring)
            out.add(coded_bench::name(each),
                    coded_bench::sequence_seconds(divided(neural), each, std::max(1, 60 / divisor)));
    out.close();
    const double latency = crossing([](plain::models& m, double x) { m.latency = x; }, 0.05);
    const double delay = crossing([](plain::models& m, double x) { m.delay = x; }, 5);
    out.open("ring_loses_from");
    out.add("latency_seconds", latency);
    out.add("delay_seconds", delay);
    out.close();
    out.open("ring_over_coded");  // latency or delay a fifth smaller and larger, by rill's protocols
    for (const double part : {0.8, 1.2}) {
        cluster slow = neural, late = neural;
        slow.models.latency = part * latency;
        late.models.delay = part * delay;
        for (const auto& [what, of] : {std::pair("latency_", slow), std::pair("delay_", late)})
            out.add(what + std::string(part < 1 ? "below" : "above"),
                    mean_of_protocol(of, scheme::ring, 10) / mean_of_protocol(of, scheme::coded, 10));
    }
    out.close();
    out.open("ring_over_coded_by_tail");  // 1/mu = 1, 10, 100 times a: both grow with the load
    for (const int factor : {1, 10, 100}) {
        cluster with = neural;
        with.models.tail = factor * with.models.shift;
        out.add(std::to_string(factor), ratio_to_ring(with, 2000));
    }
    out.close();
}

/// Figures 8 and 9: p = 5,001 doubles, 6,552 points.
struct figure {
    const char* name;
    plain::tree tree;
};
constexpr std::array figures{
    figure{"n84", {.width = 4, .depth = 3, .stragglers = 1}},
    figure{"n156_1", {.width = 12, .depth = 2, .stragglers = 1}},
    figure{"n156_2", {.width = 12, .depth = 2, .stragglers = 2}},
    figure{"n156_3", {.width = 12, .depth = 2, .stragglers = 3}},
};

cluster cluster_of(const plain::tree& shape, const plain::models& with) {
    return {.tree = shape, .points = 6552, .models = with};
}

/// The times of UMW and RAR in units of CodedReduce's time, read off Figure 8.
constexpr double paper_umw = 32.8, paper_rar = 3.8;

/// The latency at which the ring takes `paper_rar` times as long as the tree, by the plain models.
double fitted_latency(plain::models with) {
    double low = 0, high = 10 * with.gradient;
    for (int i = 0; i < 30; ++i) {
        with.latency = (low + high) / 2;
        (ratio_to_ring(cluster_of(figures[0].tree, with), 4000) > paper_rar ? high : low) = with.latency;
    }
    return high;
}

/// The models of Figures 8 and 9: t_c = 10 ms is the unit, mu a = 1; for each of several values of a, the latency that
/// gives RAR's time.
void fit(report& out) {
    for (const double ratio : {0.0, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2}) {
        plain::models with{.shift = ratio * 0.01, .tail = ratio * 0.01, .gradient = 0.01};
        with.latency = fitted_latency(with);
        const seconds_of all = plain_seconds(cluster_of(figures[0].tree, with), 4000);
        char name[32];
        std::snprintf(name, sizeof name, "a_%g", ratio);
        out.open(name);
        out.add("latency_over_gradient", with.latency / with.gradient);
        for (const scheme each : schemes)
            if (each != scheme::coded) out.add(coded_bench::name(each), all.at(each) / all.at(scheme::coded));
        out.add("log_residual_umw", std::log(all.at(scheme::star) / all.at(scheme::coded) / paper_umw));
        out.add("log_residual_rar", std::log(all.at(scheme::ring) / all.at(scheme::coded) / paper_rar));
        out.close();
    }
}

void add_figure(report& out, const char* name, const cluster& of) {
    const seconds_of plain = plain_seconds(of, 5000), real = protocol_seconds(of, 60);
    out.open(name);
    add_speedups(out, "plain", plain);
    add_speedups(out, "rill", real);
    out.add("apart", apart(real, plain));
    add_groups(out, of, 20);
    out.close();
}

void all_figures(report& out) {
    for (const figure& each : figures) add_figure(out, each.name, cluster_of(each.tree, coded_bench::fitted));
}

/// Figures 10 to 12: linear regression, by the models that are fitted to Figure 8.
cluster linear_cluster(const plain::tree& shape, double points, std::size_t parameters) {
    return {.tree = shape, .points = points, .models = coded_bench::fitted_for(parameters), .entries = parameters};
}

void linear(report& out) {
    for (const figure& each : figures) add_figure(out, each.name, linear_cluster(each.tree, 7644, 6500));
    add_figure(out, "n156_large", linear_cluster(figures.back().tree, 32'760, 5000));
}

/// Theorem 1: the load that `coded_allocation` gives each worker, in points, compared with r d.
double add_loads(report& out, const char* name, const cluster& of) {
    const rill::topology::regular_tree tree{.width = of.tree.width, .depth = of.tree.depth};
    const auto choice = rill::gradient_code::default_code(tree.width, of.tree.stragglers, rill::element_type::float64);
    const rill::coded_allocation allocation(tree, choice.code, static_cast<std::size_t>(of.points));
    std::size_t least = allocation.points(), most = 0;
    for (rill::rank_t rank = 1; rank < tree.size(); ++rank) {
        least = std::min(least, allocation.load_of(rank));
        most = std::max(most, allocation.load_of(rank));
    }
    const double ideal = of.load(scheme::coded);
    out.open(name);
    out.add("load", of.tree.load());
    out.add("ideal", ideal);
    out.add("least", static_cast<double>(least));
    out.add("most", static_cast<double>(most));
    out.close();
    return std::max(static_cast<double>(most) - ideal, ideal - static_cast<double>(least));
}

void loads(report& out) {
    double worst = add_loads(out, "neural", neural);
    for (const figure& each : figures)
        worst = std::max(worst, add_loads(out, each.name, cluster_of(each.tree, coded_bench::fitted)));
    out.add("worst", worst);
}

/// Theorem 2 for growing n at alpha = 5/12 and depth 2; the other parameters are those of the neural network.
void theorem(report& out) {
    double worst_upper = 0;
    for (const int width : {12, 24, 48, 96, 192, 384}) {
        cluster of = neural;
        of.tree.width = divisor == 1 ? width : 12;
        of.tree.stragglers = 5 * of.tree.width / 12;
        const plain::models& m = of.models;
        const double alpha = 5.0 / 12, points = of.tree.load() * of.points;
        const double computing = points * (m.tail * std::log(1 / alpha) + m.shift);
        const double lower = computing + (width * (1 - alpha) + of.tree.depth - 1) * m.gradient;
        const double upper = computing + width * of.tree.depth * m.gradient;
        const int rounds = width <= 48 ? 2000 : 100;
        const double plain = mean_of_plain(of, scheme::coded, rounds);
        out.open("n" + std::to_string(width));
        out.add("workers", of.tree.workers());
        out.add("load", of.tree.load());
        out.add("lower", lower);
        out.add("plain", plain);
        out.add("upper", upper);
        out.add("plain_over_lower", plain / lower);
        worst_upper = std::max(worst_upper, plain / upper);
        if (of.tree.workers() <= 10'000) {
            const int runs = width <= 24 ? 50 : (width <= 48 ? 10 : 2);
            of.entries = 1000;
            const double real = mean_of_protocol(of, scheme::coded, runs);
            out.add("rill", real);
            out.add("rill_over_lower", real / lower);
            worst_upper = std::max(worst_upper, real / upper);
        }
        out.close();
    }
    out.add("worst_over_upper", worst_upper);
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string_view, void (*)(report&)> cases{{"neural", neural_net},   {"fit", fit},
                                                              {"figures", all_figures}, {"linear", linear},
                                                              {"loads", loads},         {"theorem", theorem}};
    const auto chosen = argc >= 2 ? cases.find(argv[1]) : cases.end();
    if (chosen == cases.end()) {
        std::fprintf(stderr, "usage: bench_coded_timing neural|fit|figures|linear|loads|theorem [DIVISOR]\n");
        return 2;
    }
    if (argc > 2) divisor = std::atoi(argv[2]);
    try {
        report out;
        chosen->second(out);
        out.print();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_coded_timing: %s\n", failure.what());
        return 1;
    }
}
