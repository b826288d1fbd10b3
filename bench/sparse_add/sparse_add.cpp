// Times sparse additions and their baselines in turns. Prints the seconds per call of each sample as JSON.
#include <rill/core/addition.hpp>
#include <rill/core/bytes.hpp>
#include <rill/kernel/merge.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/kernel/scatter.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"
#include "../shared/turns.hpp"

#include "baseline.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>

namespace {

using baseline::target;
using baseline::view;

/// Inputs, and room for the results.
struct workload {
    std::size_t dimension;
    std::vector<bench::sparse_input> inputs{};
    std::vector<view> views{};
    std::vector<rill::aligned_vector<std::uint32_t>> indices{3};
    std::vector<rill::aligned_vector<float>> values{3};

    void add(double density) { inputs.push_back(bench::random_sparse(dimension, density, inputs.size())); }
    void make_room() {
        std::size_t most = 0;
        for (const auto& each : inputs) {
            views.push_back({each.indices, each.values});
            most += each.indices.size();
        }
        for (auto& each : indices) each.assign(most, 0);
        for (auto& each : values) each.assign(most, 0);
    }
    target room(std::size_t i) { return {indices[i].data(), values[i].data()}; }
};

/// Checks the definition: each coordinate of any input once, in ascending order, with nearly the sum of its entries
/// (orders of addition differ).
void require_sum(const std::string& name, const workload& load, view made) {
    std::vector<float> due(load.dimension);
    std::vector<bool> there(load.dimension);
    std::size_t count = 0;
    for (const auto& each : load.inputs) {
        bench::add_entries(each.indices, each.values, due);
        for (const std::uint32_t i : each.indices) {
            count += there[i] ? 0U : 1U;
            there[i] = true;
        }
    }
    bench::require(made.count() == count, name + " has " + std::to_string(made.count()) + " entries");
    for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t i = made.indices[k];
        bench::require((k == 0 || made.indices[k - 1] < i) && there[i] && std::abs(made.values[k] - due[i]) < 1e-5F,
                       name + " at coordinate " + std::to_string(i));
    }
}

/// Checks that the result is the concatenation of the inputs.
void require_copies(const workload& load, view made) {
    std::size_t at = 0;
    for (const view& each : load.views) {
        bench::require(std::equal(each.indices.begin(), each.indices.end(), made.indices.data() + at) &&
                           std::equal(each.values.begin(), each.values.end(), made.values.data() + at),
                       "concatenate");
        at += each.count();
    }
}

using adding = std::function<std::size_t(target)>;

void add_method(bench::turns& methods, workload& load, const std::string& name, const adding& add) {
    const target out = load.room(methods.empty() ? 0 : 1);
    const std::size_t count = add(out);
    name == "concatenate" ? require_copies(load, out.first(count)) : require_sum(name, load, out.first(count));
    methods.add(name, [add, out] {
        const std::size_t made = add(out);
        bench::keep(out.values);
        bench::keep(&made);
    });
}

std::size_t add_two(view a, view b, target out) {
    const std::size_t most = a.count() + b.count();
    return rill::kernel::merge<float, std::uint32_t>(a, b, {out.indices, most}, {out.values, most}, rill::addition{});
}

void two(bench::turns& methods, workload& load) {
    const view a = load.views[0], b = load.views[1];
    add_method(methods, load, "branchless", [=](target out) { return baseline::branchless(a, b, out); });
    add_method(methods, load, "rill", [=](target out) { return add_two(a, b, out); });
    add_method(methods, load, "concatenate", [&load](target out) { return baseline::concatenate(load.views, out); });
}

void many(bench::turns& methods, workload& load, bool with_queue) {
    add_method(methods, load, "tree", [&load](target out) { return baseline::tree(load.views, out, load.room(2)); });
    add_method(methods, load, "rill", [&load, scratch = rill::kernel::merge_scratch{}](target out) mutable {
        std::size_t most = 0;
        for (const view& each : load.views) most += each.count();
        return rill::kernel::merge_k<float, std::uint32_t>(load.views, {out.indices, most}, {out.values, most},
                                                           rill::addition{}, scratch);
    });
    if (with_queue)
        add_method(methods, load, "priority_queue",
                   [&load](target out) { return baseline::priority_queue(load.views, out); });
}

/// Scatters into several dense vectors in turn, so that none of them is still in a cache.
void scatter(bench::turns& methods, const view& x, std::size_t dimension) {
    static std::vector<rill::aligned_vector<float>> dense(4, rill::aligned_vector<float>(dimension, 1));
    const auto check = [&](const std::string& name, auto&& add) {
        std::vector<float> due(dimension, 1.0F);
        bench::add_entries(x.indices, x.values, due);
        rill::aligned_vector<float> to(dimension, 1.0F);
        add(to);
        bench::require_equal(to, due, name);
    };
    check("naive", [&](std::span<float> to) { baseline::scatter(x, to.data()); });
    check("rill",
          [&](std::span<float> to) { rill::kernel::scatter_fold<float, std::uint32_t>(x, 0, to, rill::addition{}); });
    auto next = [turn = std::size_t{0}]() mutable -> std::span<float> { return dense[turn++ % dense.size()]; };
    methods.add("naive", [x, next]() mutable {
        const std::span<float> to = next();
        baseline::scatter(x, to.data());
        bench::keep(to.data());
    });
    methods.add("rill", [x, next]() mutable {
        const std::span<float> to = next();
        rill::kernel::scatter_fold<float, std::uint32_t>(x, 0, to, rill::addition{});
        bench::keep(to.data());
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s two|eight|eight_no_queue|unequal|scatter DIMENSION DENSITY SAMPLES\n", argv[0]);
        return 2;
    }
    try {
        const std::string what = argv[1];
        const auto dimension = static_cast<std::size_t>(std::atoll(argv[2]));
        const double density = std::atof(argv[3]);
        const std::size_t ways = what.starts_with("eight") ? 8 : what == "scatter" ? 1 : 2;
        workload load{.dimension = dimension};
        for (std::size_t k = 0; k < ways; ++k) load.add(what == "unequal" && k == 1 ? density / 100 : density);
        load.make_room();
        bench::turns methods;
        if (ways == 8)
            many(methods, load, what == "eight");
        else if (ways == 1)
            scatter(methods, load.views[0], dimension);
        else
            two(methods, load);
        methods.run(std::atoi(argv[4]));
        methods.print();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
