#pragma once

#include <rill/collective/all_gather.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/detail/measured_exchange.hpp>
#include <rill/cost/frame_bytes.hpp>
#include <rill/cost/measure_costs.hpp>
#include <rill/cost/readable_seconds.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/cost/union_size.hpp>
#include <rill/stream/dense_switch.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/any.hpp>
#include <rill/topology/tree.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// The gradients that are added up. Values are float32, indices have 32 bits.
struct gradient_shape {
    std::size_t dimension = 0;  ///< up to 2^32
    double density = 1;         ///< the part of the coordinates in which each rank has an entry
    /// The measured number of entries of the sum of all ranks, over that of one contribution. 0: not measured; the
    /// prediction then assumes random coordinates. Gradients of a training have more coordinates in common, and so
    /// smaller sums.
    double union_growth = 0;
    /// A coding that the values of contributions may have. One other than `raw` permits a loss; it is chosen only if it
    /// is faster.
    value_coding values = value_coding::raw;
    /// As `values`, of finished sums in the copy phase, where the topology has one.
    value_coding copy = value_coding::raw;
    std::uint32_t bucket = 1024;  ///< see `coding`
    /// The adjacent coordinates of a row, if entries come in rows, as those of embeddings do. One index may then be
    /// sent for each row. From 1 to 65535; the last row may be shorter.
    std::uint32_t row_length = 1;
    /// Whether the entries are selected from a dense gradient. Then streams also cost the time of selecting.
    bool selects = false;

    friend bool operator==(const gradient_shape&, const gradient_shape&) = default;
};

/// A way to add up gradients, and the time that it is expected to take.
struct exchange_candidate {
    rill::topology::any topology{};
    bool compress = false;     ///< whether streams are exchanged, rather than dense vectors
    stream_codings codings{};  ///< of the streams
    int rounds = 0;
    int senders = 0;       ///< the most ranks that send to one at once
    duration least{};      ///< the part of `network` that a small sum takes too
    duration network{};    ///< by `predict`, and by the measured small sums
    duration computing{};  ///< of the rank that computes longest

    duration time() const { return network + computing; }
};

/// What `choose` found: the arguments for `group` and `all_reduce`.
struct exchange_choice {
    rill::topology::any topology{};
    /// For streams. Where `compress` is false, they switch to the dense form at the first fold.
    stream_codings codings{};
    bool compress = false;  ///< whether streams are exchanged, rather than dense vectors
    duration expected{};    ///< the time of an exchange
    gradient_shape gradient{};
    measured_costs costs{};
    std::vector<exchange_candidate> candidates{};  ///< the choice, then the others, the fastest first

    /// A text: the choice, the fastest candidate of another topology or form (dense or streams), and what decides
    /// between them. Needs the candidates that `choose` returns.
    std::string reason() const;
    /// The choice as a text, such as "ring with streams, indices as elias_fano".
    std::string composition() const;
    /// A hash of topology, form and codings, to tell choices apart.
    std::uint64_t fingerprint() const {
        return mix64(rill::fingerprint(topology), codings.fingerprint(),
                     compress ? std::uint64_t{1} : std::uint64_t{0});
    }
};

namespace detail {

template <Topology Shape>
exchange_candidate dense_candidate(const Shape& shape, const measured_costs& costs, const sum_times& times,
                                   const gradient_shape& gradient) {
    exchange_candidate made{.topology = shape, .codings = {.when = dense_switch{0}}};
    const entry_costs each{.bytes = sizeof(float), .fold = costs.computing.fold, .copy = costs.computing.copy};
    predict_measured(made, costs, each, dense_messages<float>(gradient.dimension), times);
    return made;
}

/// `i`: of `measured_codings`.
template <Topology Shape>
exchange_candidate stream_candidate(const Shape& shape, const measured_costs& costs, const sum_times& times,
                                    const gradient_shape& gradient, std::size_t i, dense_switch when,
                                    value_coding values, value_coding copied) {
    const auto code = [&](value_coding each) {
        coding made{.values = each, .indices = measured_codings[i], .bucket = gradient.bucket};
        if (made.indices == index_coding::whole_rows) made.row = static_cast<std::uint16_t>(gradient.row_length);
        return made;
    };
    coding lossless = code(value_coding::raw);
    lossless.bucket = coding{}.bucket;
    exchange_candidate made{
        .topology = shape,
        .compress = true,
        .codings = {.contribution = code(values), .partial = lossless, .copy = code(copied), .when = when}};
    const auto entries = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::llround(static_cast<double>(gradient.dimension) * gradient.density)));
    const std::size_t most = std::min(entries, gradient.dimension);
    const auto bytes = sparse_frame_bytes<float, std::uint32_t>(most, {0, gradient.dimension}, lossless);
    const entry_costs each{
        .bytes = most == 0 ? 1 : static_cast<double>(bytes - wire::header_bytes) / static_cast<double>(most),
        .fold = costs.computing.merge,
        .folds_own = true,
        .encode = costs.computing.encode[i],
        .decode = costs.computing.decode[i],
        .result = costs.computing.copy_entry};
    const shared_support supports =
        gradient.union_growth == 0
            ? shared_support{.density = gradient.density}
            : shared_support::of(gradient.density, costs.ranks, std::min<double>(gradient.union_growth, costs.ranks));
    predict_measured(made, costs, each, stream_messages(gradient.dimension, supports, made.codings), times);
    if (gradient.selects)
        made.computing =
            made.computing + duration(std::llround(costs.computing.select * static_cast<double>(gradient.dimension)));
    return made;
}

/// Of entries in rows, the codings whose lengths their number tells; of single entries, those that need no rows.
constexpr bool is_meant_for_rows(index_coding codes, bool are_rows) {
    if (codes == index_coding::whole_rows) return are_rows;
    return !are_rows || (codes != index_coding::huffman && codes != index_coding::packed_gaps);
}

/// Takes the fastest, or, of those that take at most a 50th longer, the one with the fewest senders. Of equally fast
/// ones it takes the first. Returns it, then the others, the fastest first.
inline std::vector<exchange_candidate> choice_first(std::vector<exchange_candidate> all) {
    std::stable_sort(all.begin(), all.end(),
                     [](const exchange_candidate& a, const exchange_candidate& b) { return a.time() < b.time(); });
    const duration least = all.front().time();
    const auto slower = std::find_if(all.begin(), all.end(), [&](const exchange_candidate& each) {
        return (each.time() - least).ns > least.ns / 50;
    });
    const auto chosen =
        std::min_element(all.begin(), slower, [](const auto& a, const auto& b) { return a.senders < b.senders; });
    std::rotate(all.begin(), chosen, chosen + 1);
    return all;
}

/// The simpler ones first.
template <Topology Shape, std::size_t Count>
std::vector<exchange_candidate> all_candidates(const std::array<Shape, Count>& shapes, const measured_costs& costs,
                                               const gradient_shape& gradient) {
    std::vector<exchange_candidate> all;
    std::array<sum_times, Count> times;
    for (std::size_t s = 0; s < Count; ++s) {
        times[s] = sum_times::over(shapes[s], s, costs);
        all.push_back(dense_candidate(shapes[s], costs, times[s], gradient));
    }
    const auto permitted = [](value_coding lossy) {
        std::vector<value_coding> codes{value_coding::raw};
        if (!is_lossless(lossy)) codes.push_back(lossy);
        return codes;
    };
    for (std::size_t i = 0; i < measured_codings.size(); ++i) {
        if (!is_meant_for_rows(measured_codings[i], gradient.row_length > 1)) continue;
        for (const double factor : {1.0, 0.5})
            for (std::size_t s = 0; s < Count; ++s)
                for (const value_coding values : permitted(gradient.values))
                    for (const value_coding copied : permitted(gradient.copy))
                        if (is_lossless(copied) || has_copy_phase(shapes[s]))
                            all.push_back(stream_candidate(shapes[s], costs, times[s], gradient, i,
                                                           dense_switch{factor}, values, copied));
    }
    return all;
}

inline std::string text_of_time(duration time) {
    const readable_seconds read = readable(time.seconds());
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %s", read.value, read.unit);
    return text;
}
inline std::string text_of_number(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", number);
    if (std::array<char, 32> few{}; std::snprintf(few.data(), few.size(), "%g", number) > 0)
        if (std::strtod(few.data(), nullptr) == number) return few.data();
    return text;
}

/// `of`: a candidate or a choice.
template <class Exchange>
std::string composition_of(const Exchange& of) {
    const std::string text = of.topology.shape_name();
    if (!of.compress) return text + " with dense vectors";
    const auto rounded = [](const char* what, value_coding codes) {
        return is_lossless(codes) ? std::string() : what + std::string(name_of(codes));
    };
    return text + " with streams, indices as " + std::string(name_of(of.codings.contribution.indices)) +
           rounded(", values as ", of.codings.contribution.values) + rounded(", sums as ", of.codings.copy.values);
}
inline std::string describe(const exchange_candidate& of) {
    return composition_of(of) + ", " + text_of_time(of.time());
}

/// The senders, if `other` would be as fast or faster; else what saves the most time of `chosen` against `other`.
inline std::string what_decides(const exchange_candidate& chosen, const exchange_candidate& other) {
    const duration least = other.least - chosen.least, computing = other.computing - chosen.computing,
                   bytes = other.network - chosen.network - least;
    if (other.time() <= chosen.time() && chosen.senders < other.senders)
        return "The difference is within 2 %; fewer ranks send to one at once: " + std::to_string(chosen.senders) +
               " instead of " + std::to_string(other.senders) + ".";
    if (other.time() == chosen.time()) return "Both take equally long; the simpler one is taken.";
    if (computing > std::max(least, bytes)) return "Less computing decides.";
    if (least > bytes && chosen.rounds < other.rounds)
        return "Fewer rounds decide: " + std::to_string(chosen.rounds) + " instead of " + std::to_string(other.rounds) +
               ".";
    if (least > bytes) return "Less time for a small sum decides.";
    return "Less time for bytes on the line decides.";
}

/// Throws `mismatch` on all ranks unless all have asked for the same.
template <class Group>
void require_equal(Group& group, const gradient_shape& gradient) {
    constexpr std::array names{"dimension", "density", "union_growth", "values",
                               "copy",      "bucket",  "row_length",   "selects"};
    using numbers = std::array<std::int64_t, names.size()>;
    const numbers own{static_cast<std::int64_t>(gradient.dimension),
                      std::bit_cast<std::int64_t>(gradient.density),
                      std::bit_cast<std::int64_t>(gradient.union_growth),
                      static_cast<std::int64_t>(gradient.values),
                      static_cast<std::int64_t>(gradient.copy),
                      std::int64_t{gradient.bucket},
                      std::int64_t{gradient.row_length},
                      gradient.selects ? 1 : 0};
    std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(group.size()));
    all_gather(group, own, all);
    const auto text = [&](std::size_t i, std::int64_t number) {
        if (i == 1 || i == 2) return text_of_number(std::bit_cast<double>(number));
        if (i == 3 || i == 4) return std::string(name_of(static_cast<value_coding>(number)));
        return std::to_string(number);
    };
    for (std::size_t at = 0; at < all.size(); ++at) {
        const std::size_t i = at % own.size();
        if (all[at] == all[i]) continue;
        const auto rank = static_cast<rank_t>(at / own.size());
        throw mismatch(abort_notice{.kind = failure::mismatch,
                                    .culprit = rank,
                                    .other = 0,
                                    .reason = "choose: rank " + std::to_string(rank) + " asked for " + names[i] + " " +
                                              text(i, all[at]) + ", rank 0 for " + text(i, all[i])});
    }
}

inline void require_gradient(const gradient_shape& gradient) {
    RILL_EXPECTS(gradient.density >= 0 && gradient.density <= 1, "cost::choose: a density is between 0 and 1");
    RILL_EXPECTS(gradient.dimension <= std::uint64_t{1} << 32, "cost::choose: indices have 32 bits");
    const auto is_shipped = [](value_coding codes) { return codes != value_coding::own && !name_of(codes).empty(); };
    RILL_EXPECTS(is_shipped(gradient.values) && is_shipped(gradient.copy),
                 "cost::choose: values are raw, bf16 or qsgd");
    RILL_EXPECTS(gradient.bucket >= 1, "cost::choose: a bucket has at least one value");
    RILL_EXPECTS(gradient.union_growth == 0 || gradient.union_growth >= 1,
                 "cost::choose: union_growth is at least 1, or 0 where it was not measured");
    RILL_EXPECTS(gradient.row_length >= 1 && gradient.row_length <= 65535,
                 "cost::choose: a row has 1 to 65535 coordinates");
}

inline void require_costs(const measured_costs& costs) {
    bool are_possible = true;
    visit_figures(costs, [&](auto figure) {
        const auto number = static_cast<double>(figure);
        are_possible = are_possible && number >= 0 && std::isfinite(number);
    });
    RILL_EXPECTS(are_possible && costs.ranks >= 1,
                 "cost::choose: needs at least one rank, and figures that are finite and not below 0");
}

}  // namespace detail

inline std::string exchange_choice::composition() const { return detail::composition_of(*this); }

inline std::string exchange_choice::reason() const {
    if (costs.ranks == 1) return "Do not compress: a single rank sends nothing.";
    RILL_EXPECTS(!candidates.empty(), "cost::exchange_choice: `choose` makes choices that have a reason");
    const exchange_candidate& best = candidates.front();
    const auto fastest = [&](const auto& is_meant) {
        return *std::find_if(candidates.begin(), candidates.end(), is_meant);
    };
    const exchange_candidate next = fastest([&](const exchange_candidate& each) {
        return each.topology != best.topology || each.compress != best.compress;
    });
    const exchange_candidate other =
        fastest([&](const exchange_candidate& each) { return each.compress != best.compress; });
    std::string text = compress ? "" : "Do not compress: ";
    text += detail::describe(best) + ". Next: " + detail::describe(next) + ". " + detail::what_decides(best, next);
    if (next.compress == best.compress)
        text += (compress ? " Without compression: " : " The best streams: ") + detail::describe(other) + ".";
    return text;
}

/// Chooses by measured figures how gradients are added up. Sends nothing. Equal arguments give equal choices.
///
/// The candidates are all topologies of `topology::any`, with dense vectors and with streams. Streams have each of
/// `measured_codings` that suits the gradient, two dense switches, and the codings of values that `gradient` permits.
/// The predicted time is that of the network, which `predict` computes from the measured link, plus the computing of
/// the busiest rank. Where small sums were measured, the network takes the time of a small sum, and that which more
/// bytes are predicted to take, less what the line lets pass at once after it was idle. Exchanges follow each other
/// without a pause. The one measured link counts for all ranks.
/// Messages both ways between two ranks share it. Messages of one rank to or from several share its network card. How
/// fast that is was measured too.
///
/// Of candidates that are predicted to take at most 2 % longer than the fastest, the one is chosen in which the fewest
/// ranks send to one at once, because bursts can take longer than predicted. Of those with as few senders the fastest
/// is chosen, and of equally fast ones the simplest.
///
/// It is a template so that a translation unit which does not call it does not compile the predictions.
/// Cost: some 70 predictions, each of O(messages); with `values` or `copy` about twice as many, with both some 230.
/// Memory: that of one prediction.
template <class = void>
exchange_choice choose(const measured_costs& costs, const gradient_shape& gradient) {
    detail::require_gradient(gradient);
    detail::require_costs(costs);
    exchange_choice made{
        .gradient = gradient,
        .costs = costs,
        .candidates = detail::choice_first(detail::all_candidates(measured_topologies, costs, gradient))};
    const exchange_candidate& best = made.candidates.front();
    made.topology = best.topology;
    made.codings = best.codings;
    made.compress = best.compress;
    made.expected = best.time();
    return made;
}

/// Measures what an exchange costs among all ranks of `net`, and chooses how gradients are added up.
///
/// Collective: every rank calls it with the same `gradient` and gets the same choice. Cost: that of `measure_costs`,
/// with messages no larger than the dense gradient, or 4 KB.
/// Errors: `mismatch` on all ranks if one has another `gradient`, which names the rank and the difference; those of
/// `measure_costs`. The argument `timeout` is that of each operation, as in `group_options`.
template <Transport Net>
exchange_choice choose(Net& net, const gradient_shape& gradient, duration timeout = group_options{}.timeout) {
    detail::require_gradient(gradient);
    group workers{net, rill::topology::tree{}, {.timeout = timeout, .name = "choose"}};
    detail::require_equal(workers, gradient);
    costs_probe probe;
    const std::size_t largest = std::max<std::size_t>(gradient.dimension * sizeof(float), 4096);
    probe.link.largest_bytes = std::min(probe.link.largest_bytes, largest);
    probe.dimension = std::clamp<std::size_t>(gradient.dimension, 1, std::size_t{1} << 22);
    // As many entries as the gradient has, up to 16,384 also where it has more coordinates.
    const double entries = std::clamp(gradient.density * static_cast<double>(gradient.dimension), 1.0, 16384.0);
    probe.density = std::clamp(entries / static_cast<double>(probe.dimension), gradient.density, 1.0);
    probe.row_length = static_cast<std::uint16_t>(gradient.row_length);
    return choose(measure_costs(workers, probe), gradient);
}

}}}  // namespace rill::RILL_ABI::cost
