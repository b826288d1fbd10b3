#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/addition.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/time.hpp>
#include <rill/cost/detail/memory_probe.hpp>
#include <rill/cost/frame_bytes.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/cost/measured_link.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/select.hpp>
#include <rill/stream/dense_switch.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/topology/any.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// The index codings whose costs are measured, and among which `choose` chooses.
inline constexpr std::array measured_codings{index_coding::raw,         index_coding::bitmap,
                                             index_coding::elias_fano,  index_coding::huffman,
                                             index_coding::packed_gaps, index_coding::whole_rows};

/// The topologies over which small sums are measured, and among which `choose` chooses.
inline constexpr std::array<topology::any, 6> measured_topologies{topology::recursive_doubling{},
                                                                  topology::split_allgather{},
                                                                  topology::ring{},
                                                                  topology::halving_doubling{},
                                                                  topology::tree{},
                                                                  topology::star{}};

/// What a rank's own computing costs, in nanoseconds, while all ranks compute: of float32 values, with indices of 32
/// bits.
struct computing_costs {
    double fold = 0;        ///< to add an element of a dense vector
    double merge = 0;       ///< to merge streams, for each of their entries
    double copy = 0;        ///< to copy an element of a dense vector to its place
    double copy_entry = 0;  ///< to copy an entry of a stream to its place in the result
    double select = 0;      ///< to look at an element for the selection of the largest
    double fetch = 0;       ///< to read a byte of a message for the first time, more than again
    double rewrite = 0;     ///< to write a byte that another rank has read, more than one that only this rank knows
    /// To write, and to read, an entry of a frame, by the codings of `measured_codings`.
    std::array<double, measured_codings.size()> encode{}, decode{};

    friend bool operator==(const computing_costs&, const computing_costs&) = default;
};

/// What whole sums take, one after the other, in nanoseconds. 0: not measured.
struct sum_costs {
    /// A sum of one element of each rank, over each of `measured_topologies`.
    std::array<double, measured_topologies.size()> small_dense{}, small_streams{};
    /// An element more of a dense sum of ranks that read each other's vectors.
    double shared = 0;

    friend bool operator==(const sum_costs&, const sum_costs&) = default;
};

/// What was measured: all that is needed to choose how gradients are added up.
struct measured_costs {
    int ranks = 1;
    bool share_memory = false;  ///< whether ranks reach each other's memory, so that dense sums may need no messages
    measured_link link{};
    computing_costs computing{};
    sum_costs sums{};

    friend bool operator==(const measured_costs&, const measured_costs&) = default;
};

namespace detail {

/// Calls `visit(figure)` for each of `computing_costs`.
template <class Computing, class Visit>
void visit_computing(Computing& of, Visit&& visit) {
    for (auto* each : {&of.fold, &of.merge, &of.copy, &of.copy_entry, &of.select, &of.fetch, &of.rewrite}) visit(*each);
    for (auto* codings : {&of.encode, &of.decode})
        for (auto& each : *codings) visit(each);
}

/// Calls `visit(figure)` for each of those that each rank measures, of which those of the slowest count.
template <class Costs, class Visit>
void visit_slowest(Costs& of, Visit&& visit) {
    visit_computing(of.computing, visit);
    for (auto* small : {&of.sums.small_dense, &of.sums.small_streams})
        for (auto& each : *small) visit(each);
    visit(of.sums.shared);
}

inline constexpr std::size_t slowest_figures = 8 + 2 * measured_codings.size() + 2 * measured_topologies.size();
inline constexpr std::size_t measured_figures = 8 + slowest_figures;

/// Calls `visit(figure)` for each of `measured_costs`, in the order in which they are saved.
template <class Costs, class Visit>
void visit_figures(Costs& of, Visit&& visit) {
    visit(of.ranks);
    visit(of.link.link.latency.ns);
    for (auto* each : {&of.link.link.bandwidth, &of.link.both_ways, &of.link.all_to_one, &of.link.one_to_all,
                       &of.link.round_trip_from})
        visit(*each);
    visit(of.share_memory);
    visit_slowest(of, visit);
}

}  // namespace detail

/// What is measured, and how carefully.
struct costs_probe {
    link_probe link{};
    double density = 0.01;                         ///< of the streams, above 0
    std::size_t dimension = std::size_t{1} << 18;  ///< of the streams and vectors
    std::uint16_t row_length = 1;                  ///< entries come in rows of so many adjacent coordinates

    /// The coordinates that a stream has, at random: whole rows, in ascending order; `mirrored`: others.
    std::vector<std::uint32_t> support(bool mirrored) const {
        const std::size_t rows = (dimension - 1) / row_length + 1;
        const auto count = std::clamp<std::size_t>(
            static_cast<std::size_t>(std::llround(static_cast<double>(rows) * density)), 1, rows);
        std::vector<std::uint32_t> chosen = detail::some_indices<std::uint32_t>(count, rows), entries;
        if (mirrored) {
            std::reverse(chosen.begin(), chosen.end());
            for (std::uint32_t& row : chosen) row = static_cast<std::uint32_t>(rows - 1) - row;
        }
        for (const std::uint32_t row : chosen)
            for (std::size_t i = std::size_t{row} * row_length;
                 i < std::min(dimension, (row + std::size_t{1}) * row_length); ++i)
                entries.push_back(static_cast<std::uint32_t>(i));
        return entries;
    }

    friend bool operator==(const costs_probe&, const costs_probe&) = default;
};

namespace detail {

/// Measures this rank's computing by the clock of `net`.
template <class Net>
class computing_probe {
  public:
    computing_probe(Net& net, const costs_probe& probe) : net_(net), probe_(probe) {}

    /// How many times as long as alone a rank computes while all others do, because they share cores; at least 1, or 0
    /// where computing takes no time, as in a simulated network. Computes for some 20 ms, enough to be interrupted by
    /// each other rank.
    double sharing() {
        std::vector<float> values(4096, 1.0F), sum(values.size());
        constexpr std::size_t few = 20;
        const auto fold = [&](std::size_t times) {
            for (std::size_t i = 0; i < times; ++i)
                kernel::fold_dense(std::span<float>(sum), std::span<const float>(values), addition{});
        };
        const double alone = time_of(few, [&] { fold(few); });
        if (alone <= 0) return 0;
        const auto many = static_cast<std::size_t>(20e6 / alone);
        const time_point start = net_.now();
        fold(many);
        return std::max(1.0, static_cast<double>((net_.now() - start).ns) / (static_cast<double>(many) * alone));
    }

    computing_costs run() {
        const std::size_t dimension = probe_.dimension;
        std::vector<float> values(dimension), sum(dimension);
        for (std::size_t i = 0; i < dimension; ++i)
            values[i] = static_cast<float>(mix64(i) % 4096);  // exact in float32, and without an order
        const std::vector<std::uint32_t> indices = probe_.support(false), others = probe_.support(true);
        const std::size_t count = indices.size();
        const auto entries = std::span<const float>(values).first(count);
        const view mine({0, dimension}, sparse_view<float, std::uint32_t>{indices, entries});
        const view theirs({0, dimension}, sparse_view<float, std::uint32_t>{
                                              others, std::span<const float>(values).first(others.size())});

        computing_costs costs;
        costs.fold = time_of(
            dimension, [&] { kernel::fold_dense(std::span<float>(sum), std::span<const float>(values), addition{}); });
        costs.copy = time_of(dimension, [&] { std::copy(values.begin(), values.end(), sum.begin()); });
        stream<float> placed(dimension);
        costs.copy_entry = time_of(count, [&] {
            const auto room = placed.make_sparse({0, dimension}, count);
            std::copy(indices.begin(), indices.end(), room.indices.begin());
            std::copy(entries.begin(), entries.end(), room.values.begin());
        });
        fold_scratch<float, std::uint32_t> folding;
        stream<float> merged;
        const std::array operands{mine, theirs};
        costs.merge = time_of(count + others.size(), [&] {
            fold_streams(std::span<const view>(operands), merged, addition{}, 0.0F, dense_switch{1e9}, folding);
        });
        kernel::select_scratch selecting;
        std::vector<std::uint32_t> chosen(count);
        costs.select = time_of(dimension, [&] {
            kernel::top_k(std::span<const float>(values), count, std::span<std::uint32_t>(chosen), selecting);
        });
        for (std::size_t i = 0; i < measured_codings.size(); ++i) measure_coding(mine, i, costs);
        return costs;
    }

  private:
    using view = stream_view<float, std::uint32_t>;

    void measure_coding(const view& mine, std::size_t i, computing_costs& costs) {
        const coding codes{.indices = measured_codings[i], .row = probe_.row_length};
        if (codes.is_view()) return;  // sent from the stream's own arrays
        arena memory;
        byte_view written;
        costs.encode[i] = time_of(mine.count(), [&] {
            memory.reset();
            written = coded_frame({.kind = operation::all_reduce, .dimension = probe_.dimension}, mine, codes,
                                  random_key{}, memory);
        });
        frame_scratch<float, std::uint32_t> room;
        costs.decode[i] = time_of(mine.count(), [&] {
            const frame read = frame_reader(byte_pieces{written}).next<float, std::uint32_t>();
            (void)content_of(read, room);
        });
    }
    /// The least time of three, in nanoseconds per unit, after one that warms up.
    template <class Work>
    double time_of(std::size_t units, Work&& work) {
        duration least{};
        for (int i = -1; i < 3; ++i) {
            const time_point start = net_.now();
            work();
            const duration took = net_.now() - start;
            if (i <= 0 || took < least) least = took;
        }
        return static_cast<double>(least.ns) / static_cast<double>(units);
    }

    Net& net_;
    costs_probe probe_;
};

/// How many times as long as alone each rank computes while all do: the least of what the ranks have found (`own`), so
/// that one that something else slows down is not taken for one that shares cores. 0, which is no measurement, counts
/// only where all have found it.
template <class Group>
double least_sharing(Group& group, double own) {
    constexpr double none = std::numeric_limits<double>::infinity();
    double least = none;
    if (own > 0) least = own;
    all_reduce(group, std::span(&least, 1), std::span(&least, 1), aggregate::min{});
    return least < none ? least : 0;
}

/// See `memory_probe::run`. The messages have the size of a contribution, up to 4 MiB.
template <class Group>
std::array<double, 2> measure_memory(Group& group, const costs_probe& probe) {
    if (group.size() == 1) return {};
    constexpr std::size_t least = 8192, most = std::size_t{1} << 22;
    const double bytes = static_cast<double>(probe.dimension) * std::min<double>(8 * probe.density, sizeof(float));
    link_probe sizes = probe.link;
    sizes.largest_bytes = std::clamp(static_cast<std::size_t>(bytes), least, most);
    sizes.repetitions = std::min(sizes.repetitions, 3);
    return run_probe<memory_probe<typename Group::transport_type>>(group, sizes, 2);
}

/// Whether ranks fold dense vectors where they are, each its part, without messages.
template <Topology Shape>
bool reads_vectors(bool share_memory, const Shape& shape) {
    return share_memory && folds_at_owners(shape);
}

/// What a call takes in which all ranks take part, in nanoseconds: of averages over some milliseconds of calls the
/// median, after a call that warms up.
template <class Group, class Call>
double time_of_call(Group& group, int repetitions, Call&& call) {
    const auto timed = [&](int calls) {
        const time_point start = group.net().now();
        for (int i = 0; i < calls; ++i) call();
        return static_cast<double>((group.net().now() - start).ns) / calls;
    };
    call();
    double once = timed(1);
    all_reduce(group, std::span(&once, 1), std::span(&once, 1), aggregate::max{});
    const int calls = static_cast<int>(std::clamp(3e6 / std::max(once, 1.0), 1.0, 1000.0));
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) times.push_back(timed(calls));
    const auto middle = times.begin() + repetitions / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

template <class Group>
sum_costs measure_sums(Group& group, const costs_probe& probe) {
    using net_type = typename Group::transport_type;
    sum_costs found;
    group_options options = group.options();
    options.name = "measured sums";
    const auto time = [&](auto&& call) { return time_of_call(group, probe.link.repetitions, call); };
    const auto ranks = static_cast<std::size_t>(group.size());
    std::vector<float> values(ranks, 1.0F), sum(ranks);
    stream<float> entry(ranks), entries;
    entry.push_back(static_cast<std::uint32_t>(group.rank()), 1.0F);
    const stream_codings codings{.when = dense_switch{1e9}};
    for (std::size_t i = 0; i < measured_topologies.size(); ++i) {
        rill::group<net_type, topology::any> workers(group.net(), measured_topologies[i], options);
        found.small_dense[i] = time([&] { all_reduce(workers, values, sum); });
        found.small_streams[i] = time([&] { all_reduce(workers, entry, entries, aggregate::sum{}, codings); });
        if (!reads_vectors(SharedMemoryTransport<net_type>, measured_topologies[i])) continue;
        std::vector<float> large(probe.dimension, 1.0F), large_sum(probe.dimension);
        const double more = time([&] { all_reduce(workers, large, large_sum); }) - found.small_dense[i];
        found.shared = std::max(0.0, more / static_cast<double>(probe.dimension));
    }
    return found;
}

}  // namespace detail

/// Measures what an exchange of gradients costs: a link, alone and under load, each rank's computing, and whole sums.
/// The slowest rank's figures count.
///
/// Collective: every rank calls it with the same `probe` and gets the same figures. The clock is that of the transport:
/// in a simulated network computing takes no time, it and sums are not measured, and the figures are exact and do
/// not change. Where ranks share cores, computing counts as much longer as all take at once than one alone. Cost: that
/// of `measure_loaded_link`, 20 ms and some 100 ns of computing per element of `probe.dimension`, four messages of the
/// size of a contribution to another rank, and 12 times `probe.link.repetitions` small sums or 3 ms of them, whichever
/// is longer; where ranks read each other's memory, some ten sums of `probe.dimension`. Memory: some 24 bytes per
/// element.
/// Errors: those of `measure_link`.
template <class Group>
measured_costs measure_costs(Group& group, const costs_probe& probe = {}) {
    RILL_EXPECTS(probe.density > 0 && probe.density <= 1 && probe.dimension >= 1 && probe.row_length >= 1,
                 "cost::measure_costs: needs a density above 0 and up to 1, and a coordinate in a row");
    measured_costs found{.ranks = group.size(),
                         .share_memory = SharedMemoryTransport<typename Group::transport_type>,
                         .link = measure_loaded_link(group, probe.link)};
    const std::array<double, 2> memory = detail::measure_memory(group, probe);
    detail::computing_probe computing(group.net(), probe);
    barrier(group);
    const double own = computing.sharing(), sharing = detail::least_sharing(group, own);
    if (own > 0) found.computing = computing.run();
    found.computing.fetch = memory[0];
    found.computing.rewrite = memory[1];
    if (sharing > 0 && group.size() > 1) found.sums = detail::measure_sums(group, probe);
    detail::visit_computing(found.computing, [&](double& each) { each *= sharing; });
    std::array<double, detail::slowest_figures> figures{};
    detail::visit_slowest(found, [&, i = std::size_t{0}](double each) mutable { figures[i++] = each; });
    all_reduce(group, figures, figures, aggregate::max{});
    detail::visit_slowest(found, [&, i = std::size_t{0}](double& most) mutable { most = figures[i++]; });
    return found;
}

}}}  // namespace rill::RILL_ABI::cost
