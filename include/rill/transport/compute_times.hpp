#pragma once

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

/// Says how long a rank computes: `model(rank, number, work)` for its `number`-th computation, from 0, of `work` units,
/// which are data points unless the program means something else. Any function of that shape is one; the same arguments
/// must give the same time, so that a run can be repeated.
template <class M>
concept ComputeModel = requires(const M& model, rank_t rank, std::uint64_t number, double work) {
    { model(rank, number, work) } -> std::convertible_to<duration>;
};

/// Any `ComputeModel`, or none.
using compute_model = any_model<duration(rank_t rank, std::uint64_t number, double work)>;

namespace detail {

/// `seconds`, which is not negative, as a duration; stops at the end of the range.
inline duration duration_of(double seconds) {
    constexpr double most = 9.2e9;
    RILL_EXPECTS(seconds >= 0, "a computation cannot take less than no time");
    return seconds >= most ? nanoseconds(INT64_MAX) : duration(std::llround(seconds * 1e9));
}

/// Uniform in (0, 1], of a rank's computation.
inline double uniform_of(std::uint64_t seed, rank_t rank, std::uint64_t number) {
    const std::uint64_t bits = mix64(seed, static_cast<unsigned>(rank), number);
    return static_cast<double>((bits >> 11U) + 1) * 0x1p-53;
}

}  // namespace detail

/// The same time for each unit of work.
struct constant_compute {
    duration unit{};

    duration operator()(rank_t, std::uint64_t, double work) const { return detail::duration_of(unit.seconds() * work); }
};

/// A time for each unit of work that is drawn for the whole computation, uniform between two bounds.
struct uniform_compute {
    duration least{};
    duration most{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((least.seconds() + (most - least).seconds() * u) * work);
    }
};

/// A fixed time for each unit and an exponential one whose mean grows with the work: of n units
/// shift · n + Exp(mean tail · n), the stragglers of CodedReduce, where a = shift and 1/μ = tail.
struct shifted_exponential {
    duration shift{};
    duration tail{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((shift.seconds() - tail.seconds() * std::log(u)) * work);
    }
};

/// Another model's times, of which there must be one, each rank's multiplied by its factor; ranks beyond the list have
/// factor 1.
struct slowed_ranks {
    compute_model times;
    std::vector<double> factors;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        RILL_EXPECTS(times, "slowed_ranks: needs the times that are multiplied");
        const auto i = static_cast<std::size_t>(rank);
        return detail::duration_of(times(rank, number, work).seconds() * (i < factors.size() ? factors[i] : 1.0));
    }
};

/// Measured times: a row for each rank, one after the other, from the first again after the last; the work is not
/// looked at. Ranks beyond the rows begin with the first row again. `read_compute_trace` reads one from a file.
class compute_trace {
  public:
    /// At least one row, and in each at least one time, none negative.
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

/// Says that this rank computes `work` units now, anywhere in a program: on a transport that has a model of computing
/// (`simulated`, `delayed`, and what is around them) it takes the time that the model says; on others it takes none,
/// because there the program itself does.
template <class Net>
void compute(Net& net, double work) {
    if constexpr (requires { net.compute(work); }) net.compute(work);
}

}}  // namespace rill::RILL_ABI
