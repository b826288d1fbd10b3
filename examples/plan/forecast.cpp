#include "forecast.hpp"

#include "network.hpp"
#include "predict_exchange.hpp"

#include <rill/compress/top_k.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/union_size.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

namespace plan {

namespace {

using namespace rill;

template <class Shape, class Union>
row predict_row(const arguments& chosen, const Shape& shape, const compressor& how, int ranks, const Union& entries,
                const computing_cost& cost) {
    const auto all =
        predict_exchange(shape, how, ranks, chosen.model_size, entries, network_of(chosen.latency, chosen.bandwidth));
    const auto empty =
        cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(0), network_of(chosen.latency, 0));
    const double folding = cost.per_byte * bytes_in_a_row(shape, how, ranks, chosen.model_size, entries);
    return {.topology = Shape::name,
            .how = how,
            .select = cost.own,
            .computing = cost.own + folding,
            .exchange = all.elapsed.seconds(),
            .latency = empty.elapsed.seconds(),
            .busiest_bytes = all.busiest_bytes(),
            .all_bytes = all.bytes()};
}

template <class Union>
forecast predict_with(const arguments& chosen, const Union& entries, const computing_costs& costs, int ranks) {
    forecast all{.ranks = ranks, .before = wait_for(chosen, ranks)};
    const auto size = static_cast<double>(chosen.model_size);
    all.union_share = entries(segment{0, chosen.model_size}, ranks) / size;
    for_each_way([&](const auto& shape, const compressor& how) {
        row each = predict_row(chosen, shape, how, ranks, entries, costs.ways[all.rows.size()]);
        each.step = all.before.slowest + each.computing + each.exchange;
        each.speed_up = ranks * all.before.alone / each.step;
        all.rows.push_back(each);
    });
    return all;
}

}  // namespace

const row& forecast::best(bool compressed) const {
    const row* found = nullptr;
    for (const row& each : rows)
        if (each.how.is_plain() != compressed && (found == nullptr || each.step < found->step)) found = &each;
    return *found;
}

const row& forecast::named(const std::string& name) const {
    for (const row& each : rows)
        if (each.name() == name) return each;
    throw wrong_argument("--code: '" + name + "' is no row; rows are named like '" + rows.front().name() + "'");
}

void require_row(const std::string& name) {
    forecast names;
    for_each_way(
        [&](const auto& shape, const compressor& how) { names.rows.push_back({.topology = shape.name, .how = how}); });
    names.named(name);
}

frequencies measure_overlap(const arguments& chosen) {
    if (chosen.gradients.empty()) return {};
    std::ifstream file(chosen.gradients, std::ios::binary);
    std::vector<float> gradient(chosen.model_size);
    const auto bytes = static_cast<std::streamsize>(gradient.size() * sizeof(float));
    auto codec = compress::top_k{.density = chosen.density}.bind(chosen.model_size);
    cost::selection_frequency counted(chosen.model_size);
    while (file.read(reinterpret_cast<char*>(gradient.data()), bytes))
        counted.add(codec.encode(std::span<const float>(gradient)).indices());
    if (counted.selections() == 0 || file.gcount() != 0)
        throw std::runtime_error(chosen.gradients + ": holds no whole number of gradients of " +
                                 std::to_string(chosen.model_size) + " float32");
    return counted;
}

std::size_t entries_sent(const arguments& chosen) {
    return std::min(chosen.model_size, compress::top_k{.density = chosen.density}.entries(chosen.model_size));
}

forecast predict_all(const arguments& chosen, const frequencies& overlap, const computing_costs& costs, int ranks) {
    if (overlap) return predict_with(chosen, *overlap, costs, ranks);
    const double density = static_cast<double>(entries_sent(chosen)) / static_cast<double>(chosen.model_size);
    return predict_with(chosen, cost::uniform_density{density}, costs, ranks);
}

}  // namespace plan
