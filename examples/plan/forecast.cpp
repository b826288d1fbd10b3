#include "forecast.hpp"

#include "network.hpp"
#include "topologies.hpp"

#include <rill/compress/top_k.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/cost/union_size.hpp>

#include <array>
#include <cstddef>
#include <fstream>
#include <span>
#include <stdexcept>

namespace plan {

namespace {

using namespace rill;

constexpr coding packed{.indices = index_coding::smallest};
constexpr coding rounded{.values = value_coding::qsgd4, .indices = index_coding::smallest};

constexpr std::array compressors = {
    compressor{.name = "none"},
    compressor{.name = "qsgd8 copies", .codings = {.copy = {.values = value_coding::qsgd8}}},
    compressor{.name = "top_k", .sparse = true},
    compressor{.name = "top_k packed", .sparse = true, .codings = {packed, packed, packed}},
    compressor{.name = "top_k packed, qsgd4 copies", .sparse = true, .codings = {packed, packed, rounded}}};

/// The times and traffic of one exchange.
template <class Shape, class Messages>
row row_of(const arguments& chosen, const Shape& shape, const compressor& how, int ranks, Messages messages) {
    const auto net = network_of(chosen);
    const auto all = cost::predict_all_reduce(shape, ranks, messages, net);
    const auto empty = cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(0),
                                                uniform_links{{.latency = net.latency, .bandwidth = 0}});
    return {.topology = Shape::name,
            .how = how,
            .exchange = all.elapsed.seconds(),
            .latency = empty.elapsed.seconds(),
            .busiest_bytes = all.busiest_bytes(),
            .all_bytes = all.bytes()};
}

template <class Shape, class Union>
row predict_row(const arguments& chosen, const Shape& shape, const compressor& how, int ranks, const Union& entries) {
    if (how.is_plain()) return row_of(chosen, shape, how, ranks, cost::dense_messages<float>(chosen.model_size));
    return row_of(chosen, shape, how, ranks,
                  cost::stream_messages(chosen.model_size, entries, how.codings, !how.sparse));
}

template <class Union>
forecast predict_with(const arguments& chosen, const Union& entries, int ranks) {
    forecast all{.ranks = ranks, .before = wait_for(chosen, ranks)};
    const auto size = static_cast<double>(chosen.model_size);
    all.union_share = entries(segment{0, chosen.model_size}, ranks) / size;
    for_each_topology([&](const auto& shape) {
        for (const compressor& how : compressors) {
            if (!shape.has_copy_phase && !how.codings.copy.is_lossless()) continue;
            row each = predict_row(chosen, shape, how, ranks, entries);
            each.step = all.before.slowest + (how.sparse ? chosen.select : 0) + each.exchange;
            each.speed_up = ranks * all.before.alone / each.step;
            all.rows.push_back(each);
        }
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

forecast predict_all(const arguments& chosen, const frequencies& overlap, int ranks) {
    if (overlap) return predict_with(chosen, *overlap, ranks);
    return predict_with(chosen, cost::uniform_density{chosen.density}, ranks);
}

}  // namespace plan
