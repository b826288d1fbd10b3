#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
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
#include <rill/cost/frame_bytes.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/cost/measured_link.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/select.hpp>
#include <rill/stream/dense_switch.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// The index codings whose costs are measured, and among which `choose` chooses.
inline constexpr std::array measured_codings{index_coding::raw, index_coding::bitmap, index_coding::elias_fano,
                                             index_coding::huffman, index_coding::packed_gaps};

/// What a rank's own computing costs, in nanoseconds: of float32 values, with indices of 32 bits.
struct computing_costs {
    double fold = 0;        ///< to add an element of a dense vector
    double merge = 0;       ///< to merge an entry of a stream into another stream
    double copy = 0;        ///< to copy an element of a dense vector to its place
    double copy_entry = 0;  ///< to copy an entry of a stream to its place in the result
    double select = 0;      ///< to look at an element for the selection of the largest
    /// To write, and to read, an entry of a frame, by the codings of `measured_codings`.
    std::array<double, measured_codings.size()> encode{}, decode{};

    friend bool operator==(const computing_costs&, const computing_costs&) = default;
};

/// What was measured: all that is needed to choose how gradients are added up.
struct measured_costs {
    int ranks = 1;
    measured_link link{};
    computing_costs computing{};

    friend bool operator==(const measured_costs&, const measured_costs&) = default;
};

/// What is measured, and how carefully.
struct costs_probe {
    link_probe link{};
    double density = 0.01;                         ///< of the streams, above 0
    std::size_t dimension = std::size_t{1} << 18;  ///< of the streams and vectors

    friend bool operator==(const costs_probe&, const costs_probe&) = default;
};

namespace detail {

/// Measures this rank's computing by the clock of `net`.
template <class Net>
class computing_probe {
  public:
    computing_probe(Net& net, const costs_probe& probe) : net_(net), probe_(probe) {}

    computing_costs run() {
        const std::size_t dimension = probe_.dimension;
        const auto count = std::clamp<std::size_t>(
            static_cast<std::size_t>(std::llround(static_cast<double>(dimension) * probe_.density)), 1, dimension);
        std::vector<float> values(dimension), sum(dimension);
        for (std::size_t i = 0; i < dimension; ++i)
            values[i] = static_cast<float>(mix64(i) % 4096);  // exact in float32, and without an order
        const std::vector<std::uint32_t> indices = some_indices<std::uint32_t>(count, dimension);
        std::vector<std::uint32_t> others(count);  // another random support
        for (std::size_t i = 0; i < count; ++i)
            others[i] = static_cast<std::uint32_t>(dimension - 1) - indices[count - 1 - i];
        const auto entries = std::span<const float>(values).first(count);
        const view mine({0, dimension}, sparse_view<float, std::uint32_t>{indices, entries});
        const view theirs({0, dimension}, sparse_view<float, std::uint32_t>{others, entries});

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
        costs.merge = time_of(2 * count, [&] {
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
        const coding codes{.indices = measured_codings[i]};
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

}  // namespace detail

/// Measures what an exchange of gradients costs: a link, alone and under load, and each rank's computing, of which the
/// slowest rank's counts.
///
/// Collective: every rank calls it with the same `probe` and gets the same figures. The clock is that of the transport:
/// in a simulated network computing takes no time, and the figures are exact and do not change. Cost: that of
/// `measure_loaded_link`, some 100 ns of computing per element of `probe.dimension`, and an `all_reduce` of 15
/// numbers. Memory: some 24 bytes per element. Errors: those of `measure_link`.
template <class Group>
measured_costs measure_costs(Group& group, const costs_probe& probe = {}) {
    RILL_EXPECTS(probe.density > 0 && probe.density <= 1 && probe.dimension >= 1,
                 "cost::measure_costs: needs a density above 0 and up to 1, and a coordinate");
    measured_costs found{.ranks = group.size(), .link = measure_loaded_link(group, probe.link)};
    const computing_costs own = detail::computing_probe(group.net(), probe).run();
    constexpr std::size_t codings = measured_codings.size();
    std::array<double, 5 + 2 * codings> figures{own.fold, own.merge, own.copy, own.copy_entry, own.select};
    std::copy(own.encode.begin(), own.encode.end(), figures.begin() + 5);
    std::copy(own.decode.begin(), own.decode.end(), figures.begin() + 5 + codings);
    all_reduce(group, figures, figures, aggregate::max{});
    found.computing = {
        .fold = figures[0], .merge = figures[1], .copy = figures[2], .copy_entry = figures[3], .select = figures[4]};
    std::copy_n(figures.begin() + 5, codings, found.computing.encode.begin());
    std::copy_n(figures.begin() + 5 + codings, codings, found.computing.decode.begin());
    return found;
}

}}}  // namespace rill::RILL_ABI::cost
