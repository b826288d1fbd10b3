#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/core/addition.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/time.hpp>
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
    /// To write, and to read, an entry of a frame, by the codings of `measured_codings`.
    std::array<double, measured_codings.size()> encode{}, decode{};

    friend bool operator==(const computing_costs&, const computing_costs&) = default;
};

/// What sums take over each of `measured_topologies`, one after the other, in nanoseconds. 0: not measured.
struct sum_costs {
    int few = 0;  ///< how many entries of each rank, or elements, a small sum has
    /// A small sum of dense vectors, and of streams.
    std::array<double, measured_topologies.size()> small_dense{}, small_streams{};
    /// An element, or entry, of the sum more. Measured where ranks read each other's memory: then a link has no
    /// bandwidth by which this could be predicted.
    std::array<double, measured_topologies.size()> dense{}, streams{};

    friend bool operator==(const sum_costs&, const sum_costs&) = default;
};

/// What was measured: all that is needed to choose how gradients are added up.
struct measured_costs {
    int ranks = 1;
    measured_link link{};
    computing_costs computing{};
    sum_costs sums{};

    friend bool operator==(const measured_costs&, const measured_costs&) = default;
};

namespace detail {

/// Calls `visit(figure)` for each of `computing_costs`.
template <class Computing, class Visit>
void visit_computing(Computing& of, Visit&& visit) {
    for (auto* each : {&of.fold, &of.merge, &of.copy, &of.copy_entry, &of.select}) visit(*each);
    for (auto* codings : {&of.encode, &of.decode})
        for (auto& each : *codings) visit(each);
}

/// Calls `visit(figure)` for each of those that each rank measures, of which those of the slowest count.
template <class Costs, class Visit>
void visit_slowest(Costs& of, Visit&& visit) {
    visit_computing(of.computing, visit);
    for (auto* sums : {&of.sums.small_dense, &of.sums.small_streams, &of.sums.dense, &of.sums.streams})
        for (auto& each : *sums) visit(each);
}

inline constexpr std::size_t slowest_figures = 5 + 2 * measured_codings.size() + 4 * measured_topologies.size();
inline constexpr std::size_t measured_figures = 9 + slowest_figures;

/// Calls `visit(figure)` for each of `measured_costs`, in the order in which they are saved.
template <class Costs, class Visit>
void visit_figures(Costs& of, Visit&& visit) {
    visit(of.ranks);
    visit(of.link.link.latency.ns);
    for (auto* each : {&of.link.link.bandwidth, &of.link.both_ways, &of.link.all_to_one, &of.link.one_to_all,
                       &of.link.round_trip_from, &of.link.at_once})
        visit(*each);
    visit(of.sums.few);
    visit_slowest(of, visit);
}

}  // namespace detail

/// What is measured, and how carefully.
struct costs_probe {
    link_probe link{};
    double density = 0.01;                         ///< of the streams, above 0
    std::size_t dimension = std::size_t{1} << 18;  ///< of the streams and vectors
    std::uint16_t row_length = 1;                  ///< entries come in rows of so many adjacent coordinates

    std::size_t rows() const { return (dimension - 1) / row_length + 1; }
    std::size_t rows_of_stream() const {
        const auto wanted = static_cast<std::size_t>(std::llround(static_cast<double>(rows()) * density));
        return std::clamp<std::size_t>(wanted, 1, rows());
    }
    /// The coordinates that a stream has, at random: whole rows, in ascending order. Each `stream` has others. The last
    /// row may be shorter.
    std::vector<std::uint32_t> support(std::uint64_t stream) const {
        const std::size_t rows = this->rows();
        std::vector<std::uint32_t> chosen = detail::some_indices<std::uint32_t>(rows_of_stream(), rows), entries;
        const std::size_t shift = mix64(stream) % rows;
        for (std::uint32_t& row : chosen) row = static_cast<std::uint32_t>((row + shift) % rows);
        std::sort(chosen.begin(), chosen.end());
        for (const std::uint32_t row : chosen)
            for (std::size_t i = std::size_t{row} * row_length;
                 i < std::min(dimension, (row + std::size_t{1}) * row_length); ++i)
                entries.push_back(static_cast<std::uint32_t>(i));
        return entries;
    }

    friend bool operator==(const costs_probe&, const costs_probe&) = default;
};

namespace detail {

/// The bytes of an entry in raw coding. A dense part of a stream counts as many entries as it has times these bytes.
inline constexpr std::size_t entry_bytes = sizeof(float) + sizeof(std::uint32_t);
inline double entries_of(std::size_t bytes) { return static_cast<double>(bytes) / entry_bytes; }

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
        const std::vector<std::uint32_t> indices = probe_.support(0), others = probe_.support(1);
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

/// The streams of a small sum: each rank has a few entries at coordinates of its own, and the sum has a quarter of all
/// coordinates, so that it does not switch to the dense form. Models `UnionModel`.
struct small_sum {
    int ranks = 1;
    int few = 0;

    std::size_t dimension() const { return 4 * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(few); }
    std::vector<std::uint32_t> support(rank_t rank) const {
        std::vector<std::uint32_t> found(static_cast<std::size_t>(few));
        for (std::size_t i = 0; i < found.size(); ++i)
            found[i] =
                4 * static_cast<std::uint32_t>(i * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank));
        return found;
    }
    /// Of short frames, so that a small sum takes longer than the line needs for its bytes.
    static stream_codings codings() {
        constexpr coding short_ones{.indices = index_coding::elias_fano};
        return {.contribution = short_ones, .partial = short_ones, .copy = short_ones};
    }
    double operator()(segment range, int contributors) const {
        return static_cast<double>(range.size()) * contributors / (4 * ranks);
    }
};

/// Measures sums by the clock of the transport, on one rank.
template <class Group>
class sums_probe {
  public:
    sums_probe(Group& group, const costs_probe& probe) : group_(group), probe_(probe), options_(group.options()) {
        options_.name = "measured sums";
    }

    sum_costs run() {
        constexpr bool shares_memory = SharedMemoryTransport<net_type>;
        // The same on all ranks, though not all streams have the same number of entries.
        const std::size_t entries_of_stream = probe_.rows_of_stream() * probe_.row_length;
        sum_costs found{.few = shares_memory ? 1 : static_cast<int>(std::min(entries_of_stream, most_of_few))};
        const small_sum few{group_.size(), found.few};
        count(static_cast<std::size_t>(found.few), few.dimension(), few.support(group_.rank()),
              shares_memory ? stream_codings{} : few.codings(), found.small_dense, found.small_streams);
        if constexpr (shares_memory) {
            const auto support = probe_.support(static_cast<std::uint64_t>(group_.rank()));
            const double entries = count(probe_.dimension, probe_.dimension, support, {}, found.dense, found.streams);
            const auto elements = static_cast<double>(probe_.dimension);
            for (std::size_t i = 0; i < measured_topologies.size(); ++i) {
                found.dense[i] = std::max(0.0, (found.dense[i] - found.small_dense[i]) / elements);
                found.streams[i] = std::max(0.0, (found.streams[i] - found.small_streams[i]) / entries);
            }
        }
        return found;
    }

  private:
    using net_type = typename Group::transport_type;
    using figures = std::array<double, measured_topologies.size()>;

    /// So many entries of several ranks take more than one packet, as messages of most gradients do.
    static constexpr std::size_t most_of_few = 128;

    /// Writes the times of sums over each topology. Returns the entries of a sum of streams.
    double count(std::size_t elements, std::size_t dimension, const std::vector<std::uint32_t>& support,
                 const stream_codings& codings, figures& dense, figures& streams) {
        std::vector<float> values(elements, 1.0F), sum(elements);
        stream<float> mine(dimension), all;
        for (const std::uint32_t i : support) mine.push_back(i, 1.0F);
        for (std::size_t i = 0; i < measured_topologies.size(); ++i) {
            rill::group<net_type, topology::any> workers(group_.net(), measured_topologies[i], options_);
            dense[i] = time_of([&] { all_reduce(workers, values, sum); });
            streams[i] = time_of([&] { all_reduce(workers, mine, all, aggregate::sum{}, codings); });
        }
        return entries_of(all.is_dense() ? dimension * sizeof(float) : all.values().size() * entry_bytes);
    }

    /// The time of a call in which all ranks take part: of averages over some milliseconds of calls the median.
    template <class Call>
    double time_of(Call&& call) {
        const auto timed = [&](int calls) {
            const time_point start = group_.net().now();
            for (int i = 0; i < calls; ++i) call();
            return static_cast<double>((group_.net().now() - start).ns) / calls;
        };
        call();  // warms up
        double once = timed(1);
        all_reduce(group_, std::span(&once, 1), std::span(&once, 1), aggregate::max{});
        const int calls = static_cast<int>(std::clamp(3e6 / std::max(once, 1.0), 1.0, 1000.0));
        std::vector<double> times(static_cast<std::size_t>(probe_.link.repetitions));
        for (double& each : times) each = timed(calls);
        const auto middle = times.begin() + probe_.link.repetitions / 2;
        std::nth_element(times.begin(), middle, times.end());
        return *middle;
    }

    Group& group_;
    costs_probe probe_;
    group_options options_;
};

}  // namespace detail

/// Measures what an exchange of gradients costs: a link, alone and under load, each rank's computing, and whole sums.
/// The slowest rank's figures count.
///
/// Collective: every rank calls it with the same `probe` and gets the same figures. The clock is that of the transport:
/// in a simulated network computing takes no time, it and sums are not measured, and the figures are exact and do
/// not change. Where ranks share cores, computing counts as much longer as all take at once than one alone. Cost: that
/// of `measure_loaded_link`, 20 ms and some 100 ns of computing per element of `probe.dimension`, and 12
/// (`probe.link.repetitions` + 2) small sums or 40 ms, whichever is longer; where ranks share memory, as many of
/// `probe.dimension`. Memory: some 24 bytes per element.
/// Errors: those of `measure_link`.
template <class Group>
measured_costs measure_costs(Group& group, const costs_probe& probe = {}) {
    RILL_EXPECTS(probe.density > 0 && probe.density <= 1 && probe.dimension >= 1 && probe.row_length >= 1,
                 "cost::measure_costs: needs a density above 0 and up to 1, and a coordinate in a row");
    measured_costs found{.ranks = group.size(), .link = measure_loaded_link(group, probe.link)};
    detail::computing_probe computing(group.net(), probe);
    barrier(group);
    const double own = computing.sharing(), sharing = detail::least_sharing(group, own);
    if (own > 0) found.computing = computing.run();
    if (sharing > 0 && group.size() > 1) found.sums = detail::sums_probe(group, probe).run();
    detail::visit_computing(found.computing, [&](double& each) { each *= sharing; });
    std::array<double, detail::slowest_figures> figures{};
    detail::visit_slowest(found, [&, i = std::size_t{0}](double each) mutable { figures[i++] = each; });
    all_reduce(group, figures, figures, aggregate::max{});
    detail::visit_slowest(found, [&, i = std::size_t{0}](double& most) mutable { most = figures[i++]; });
    return found;
}

}}}  // namespace rill::RILL_ABI::cost
