#pragma once

#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Who computes the gradient of which partitions of the data, with which coefficients, and how their sum is regained
/// when some workers are missing: a matrix B with a row for each of `workers()` and a column for each of
/// `partitions()`, all of them real numbers.
///
/// Worker w computes and sends b_w·G = Σ coefficients_of(w)[j] · gradient of partition partitions_of(w)[j]: encoding is
/// a weight per partition. Partitions are numbered `0 … partitions()-1`, each worker's in ascending order.
///
/// Survivors are distinct workers in any order. A set is decodable when a row a with a·B = 1 exists that is zero
/// outside of it; any `workers() - stragglers()` of them are. `decoding_row(survivors, row)` writes such an a, `row[i]`
/// for `survivors[i]`; a set that is not decodable breaks its contract. `approximate_row` does the same for any set,
/// with the a of least ‖a·B − 1‖₂, which it returns.
///
/// A code of which fewer may be enough says so by `least_survivors()`: with fewer than that nobody need ask.
///
/// Codes are immutable: several threads may ask one at the same time, and the same survivors get the same bits always.
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

/// A value that is bound to numbers of workers and stragglers to give a code.
template <class P>
concept GradientCodePolicy = std::regular<P> && requires(const P& policy, int workers, int stragglers) {
    { policy.bind(workers, stragglers) } -> GradientCode;
    { P::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
