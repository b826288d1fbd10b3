// rill 0.1.0: <rill/coding/repetition_groups.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_CODING_REPETITION_GROUPS_HPP
#define RILL_SINGLE_CODING_REPETITION_GROUPS_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/coding/repetition_groups.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/coding/repetition_groups.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#ifndef RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP
#define RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP

// ===== rill/concept/gradient_code.hpp

namespace rill::inline RILL_ABI {

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

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP

#ifndef RILL_SINGLE_CODING_GROUP_CODE_HPP
#define RILL_SINGLE_CODING_GROUP_CODE_HPP

// ===== rill/coding/group_code.hpp

namespace rill::inline RILL_ABI::codes {

/// Repetition: the workers form groups of more than `stragglers()` neighbours, those of one group compute the same sum
/// of neighbouring partitions, and one survivor of each group is enough.
///
/// The lowest survivor of each group has coefficient 1, all others have 0: what is decoded has the same bits whoever is
/// lost. Any set that has a survivor in each group is decodable, however many are lost.
/// Cost: a row takes O(survivors) when they are in ascending order, O(survivors²) otherwise; nothing is allocated.
class group_code {
  public:
    /// `groups` of nearly equal size, each with its own `partitions_per_group`.
    group_code(int workers, int stragglers, int groups, int partitions_per_group)
        : workers_(workers),
          stragglers_(stragglers),
          groups_(groups),
          each_(static_cast<std::size_t>(partitions_per_group)) {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "gradient code: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(0 < groups && groups <= workers / (stragglers + 1), "gradient code: a group is lost as a whole");
        RILL_EXPECTS(partitions_per_group > 0, "gradient code: a group has no partition");
        ones_.assign(each_, 1.0);
        for (int j = 0; j < groups * partitions_per_group; ++j) numbers_.push_back(j);
    }

    int workers() const { return workers_; }
    int partitions() const { return static_cast<int>(numbers_.size()); }
    int stragglers() const { return stragglers_; }
    /// The fewest that may be decodable: one of each group.
    int least_survivors() const { return groups_; }
    int groups() const { return groups_; }
    int group_of(int worker) const {
        RILL_EXPECTS(0 <= worker && worker < workers_, "gradient code: no such worker");
        return static_cast<int>((static_cast<long long>(worker + 1) * groups_ - 1) / workers_);
    }

    std::span<const int> partitions_of(int worker) const {
        return std::span(numbers_).subspan(static_cast<std::size_t>(group_of(worker)) * each_, each_);
    }
    std::span<const double> coefficients_of(int worker) const {
        static_cast<void>(group_of(worker));
        return ones_;
    }

    bool is_decodable(std::span<const int> survivors) const { return present(survivors, nullptr) == groups_; }

    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        const double error = approximate_row(survivors, row);
        RILL_EXPECTS(error == 0, "gradient code: too few workers are left to decode the gradient");
        static_cast<void>(error);
    }

    /// Leaves out the groups that are lost as a whole: ‖a·B − 1‖₂ is the square root of the number of their partitions.
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        RILL_EXPECTS(row.size() == survivors.size(), "gradient code: a row has one coefficient per survivor");
        const int missing = groups_ - present(survivors, row.data());
        return std::sqrt(static_cast<double>(missing) * static_cast<double>(each_));
    }

  private:
    /// How many groups have a survivor; marks their lowest in `row`, where there is one.
    int present(std::span<const int> survivors, double* row) const {
        bool ascending = true;
        for (std::size_t i = 1; i < survivors.size(); ++i) ascending = ascending && survivors[i - 1] < survivors[i];
        int found = 0, before = -1;
        for (std::size_t i = 0; i < survivors.size(); ++i) {
            const int group = group_of(survivors[i]);
            const bool first = ascending ? group != before : is_lowest(survivors, i);
            before = group;
            found += first ? 1 : 0;
            if (row != nullptr) row[i] = first ? 1 : 0;
        }
        return found;
    }
    bool is_lowest(std::span<const int> survivors, std::size_t at) const {
        const int group = group_of(survivors[at]);
        bool lowest = true;
        for (std::size_t i = 0; i < survivors.size(); ++i) {
            RILL_EXPECTS(i == at || survivors[i] != survivors[at],
                         "gradient code: a worker is twice among the survivors");
            lowest = lowest && (survivors[i] >= survivors[at] || group_of(survivors[i]) != group);
        }
        return lowest;
    }

    int workers_;
    int stragglers_;
    int groups_;
    std::size_t each_;
    std::vector<int> numbers_;  // 0 … partitions-1
    std::vector<double> ones_;
};

static_assert(GradientCode<group_code>);

}  // namespace rill::inline RILL_ABI::codes

#endif  // RILL_SINGLE_CODING_GROUP_CODE_HPP

// ===== rill/coding/repetition_groups.hpp

namespace rill::inline RILL_ABI::codes {

/// g = ⌊n/(s+1)⌋ partitions, one for each of g groups of nearly equal size: for any n.
///
/// Load 1/g of the data, which is more than (s+1)/n where s+1 does not divide n; no error is amplified.
struct repetition_groups {
    static constexpr const char* name = "repetition_groups";

    group_code bind(int workers, int stragglers) const {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "repetition_groups: stragglers are at least 0 and fewer than the workers");
        return {workers, stragglers, workers / (stragglers + 1), 1};
    }

    template <class Visit>
    constexpr void visit_options(Visit&&) const {}

    friend constexpr bool operator==(repetition_groups, repetition_groups) = default;
};

static_assert(GradientCodePolicy<repetition_groups>);

}  // namespace rill::inline RILL_ABI::codes

#endif  // RILL_SINGLE_CODING_REPETITION_GROUPS_HPP
