#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A repetition code. Models `GradientCode`.
///
/// The workers form groups of more than `stragglers()` neighbours. All workers of a group compute the same sum of
/// neighbouring partitions, so that one survivor of each group is enough.
///
/// The lowest survivor of each group has coefficient 1, all others 0: the decoded bits do not depend on who is lost.
/// Any set with a survivor in each group is decodable, however many workers are lost. Cost: a row takes O(survivors)
/// when they are in ascending order, O(survivors²) otherwise; nothing is allocated.
class group_code {
  public:
    /// Makes `groups` groups of nearly equal size, each with `partitions_per_group` partitions of its own.
    group_code(int workers, int stragglers, int groups, int partitions_per_group)
        : workers_(workers),
          stragglers_(stragglers),
          groups_(groups),
          each_(static_cast<std::size_t>(partitions_per_group)) {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "gradient code: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(0 < groups && groups <= workers / (stragglers + 1),
                     "gradient code: the number of groups must be between 1 and workers / (stragglers + 1)");
        RILL_EXPECTS(partitions_per_group > 0, "gradient code: a group has no partition");
        ones_.assign(each_, 1.0);
        for (int j = 0; j < groups * partitions_per_group; ++j) numbers_.push_back(j);
    }

    int workers() const { return workers_; }
    int partitions() const { return static_cast<int>(numbers_.size()); }
    int stragglers() const { return stragglers_; }
    /// The fewest survivors that can be decodable: one of each group.
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
    /// Returns how many groups have a survivor. Sets `row`, unless null, to 1 for each group's lowest survivor and to 0
    /// for the others.
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
                         "gradient code: a worker appears twice among the survivors");
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

}}}  // namespace rill::RILL_ABI::gradient_code
