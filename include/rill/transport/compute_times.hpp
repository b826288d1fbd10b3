#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/any_model.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Says how long a rank computes: `model(rank, number, work)` is the time of its `number`-th computation (from 0) of
/// `work` units. A unit is a data point unless the program means something else. Any callable with this signature
/// models it; equal arguments must give equal times, so that a run can be repeated.
template <class M>
concept ComputeModel = requires(const M& model, rank_t rank, std::uint64_t number, double work) {
    { model(rank, number, work) } -> std::convertible_to<duration>;
};

/// Any `ComputeModel`, or none.
using compute_model = any_model<duration(rank_t rank, std::uint64_t number, double work)>;

namespace detail {

/// Converts `seconds` (not negative) to a duration; saturates at the largest one.
inline duration duration_of(double seconds) {
    constexpr double most = 9.2e9;
    RILL_EXPECTS(seconds >= 0, "the time of a computation must not be negative");
    return seconds >= most ? nanoseconds(INT64_MAX) : duration(std::llround(seconds * 1e9));
}

/// Draws the number of a rank's computation, uniform in (0, 1].
inline double uniform_of(std::uint64_t seed, rank_t rank, std::uint64_t number) {
    const std::uint64_t bits = mix64(seed, static_cast<unsigned>(rank), number);
    return static_cast<double>((bits >> 11U) + 1) * 0x1p-53;
}

}  // namespace detail

/// Every unit of work takes the same time. Models `ComputeModel`.
struct constant_compute {
    duration unit{};

    duration operator()(rank_t, std::uint64_t, double work) const { return detail::duration_of(unit.seconds() * work); }
};

/// Draws the time of a unit of work once per computation, uniform between two bounds. Models `ComputeModel`.
struct uniform_compute {
    duration least{};
    duration most{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((least.seconds() + (most - least).seconds() * u) * work);
    }
};

/// A fixed time per unit plus an exponential time whose mean grows with the work: n units take
/// shift · n + Exp(mean tail · n). These are the stragglers of CodedReduce, with a = shift and 1/μ = tail.
/// Models `ComputeModel`.
struct shifted_exponential {
    duration shift{};
    duration tail{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((shift.seconds() - tail.seconds() * std::log(u)) * work);
    }
};

/// Multiplies the times of another model by a factor per rank; ranks beyond the list have factor 1. `times` must hold a
/// model. Models `ComputeModel`.
struct slowed_ranks {
    compute_model times;
    std::vector<double> factors;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        RILL_EXPECTS(times, "slowed_ranks: needs the times that are multiplied");
        const auto i = static_cast<std::size_t>(rank);
        return detail::duration_of(times(rank, number, work).seconds() * (i < factors.size() ? factors[i] : 1.0));
    }
};

/// Replays measured times: computation `number` of a rank takes entry `number` of the rank's row, modulo the length of
/// the row; the work is ignored. Rank r uses row r modulo the number of rows. `read_compute_trace` reads a trace from a
/// file. Models `ComputeModel`.
class compute_trace {
  public:
    /// Needs at least one row, at least one time in each row, and no negative time.
    explicit compute_trace(std::vector<std::vector<duration>> rows) : rows_(std::move(rows)) {
        RILL_EXPECTS(!rows_.empty(), "compute_trace: needs the times of a rank");
        for (const auto& row : rows_) {
            RILL_EXPECTS(!row.empty(), "compute_trace: a rank has at least one time");
            for ([[maybe_unused]] const duration each : row)
                RILL_EXPECTS(each.ns >= 0, "compute_trace: no time is negative");
        }
    }

    const std::vector<std::vector<duration>>& rows() const { return rows_; }

    duration operator()(rank_t rank, std::uint64_t number, double) const {
        const auto& row = rows_[static_cast<std::size_t>(rank) % rows_.size()];
        return row[number % row.size()];
    }

  private:
    std::vector<std::vector<duration>> rows_;
};

/// Tells the transport that this rank now computes `work` units. A `ComputingTransport` (`simulated`,
/// `delayed`, and wrappers around them) lets the time of the model pass. On all others the call does nothing, because
/// there the program's own computation takes the time.
template <class Net>
void compute(Net& net, double work) {
    if constexpr (ComputingTransport<Net>) net.compute(work);
}

}}  // namespace rill::RILL_ABI
