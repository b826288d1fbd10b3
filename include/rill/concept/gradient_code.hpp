#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// A gradient code: which worker computes the gradients of which partitions of the data, and how the sum over all
/// partitions is recovered when some workers are missing. It is a real matrix B with a row for each of `workers()` and
/// a column for each of `partitions()`.
///
/// Worker w computes and sends b_w·G = Σ_j coefficients_of(w)[j] · gradient of partition partitions_of(w)[j].
/// Partitions are numbered `0 … partitions()-1`; those of a worker are in ascending order.
///
/// Survivors are distinct workers in any order. A set of survivors is decodable if there is a row a with a·B = 1 that
/// is zero outside the set; any `workers() - stragglers()` workers are. `decoding_row(survivors, row)` writes such an
/// a, with `row[i]` for `survivors[i]`; that the set is decodable is a precondition. `approximate_row` takes any set,
/// writes the a with the least ‖a·B − 1‖₂, and returns that norm.
///
/// Codes are immutable: several threads may call one at the same time, and the same survivors always give the same
/// bits.
template <class C>
concept GradientCode =
    std::copyable<C> && requires(const C& code, int worker, std::span<const int> survivors, std::span<double> row) {
        { code.workers() } -> std::same_as<int>;
        { code.partitions() } -> std::same_as<int>;
        { code.stragglers() } -> std::same_as<int>;
        { code.partitions_of(worker) } -> std::convertible_to<std::span<const int>>;
        { code.coefficients_of(worker) } -> std::convertible_to<std::span<const double>>;
        { code.is_decodable(survivors) } -> std::same_as<bool>;
        { code.decoding_row(survivors, row) };
        { code.approximate_row(survivors, row) } -> std::same_as<double>;
    };

/// A code that can decode some sets of fewer than `workers() - stragglers()` workers: no set of fewer than
/// `least_survivors()` is decodable, so callers need not test it.
template <class C>
concept SmallSetCode = GradientCode<C> && requires(const C& code) {
    { code.least_survivors() } -> std::same_as<int>;
};

/// A value whose `bind(workers, stragglers)` gives a `GradientCode`.
template <class P>
concept GradientCodePolicy = Regular<P> && requires(const P& policy, int workers, int stragglers) {
    { policy.bind(workers, stragglers) } -> GradientCode;
    { P::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
