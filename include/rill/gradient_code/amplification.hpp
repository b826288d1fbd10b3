#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// How much a code amplifies the errors of its messages. The amplification of a set F of n - s survivors is Σ over i ∈
/// F of |a_i|·‖b_i‖₁, divided by the number of partitions; 1 is the least possible.
struct amplification_report {
    double worst = 1;  ///< infinite if rounding errors leave some set without a decoding row
    double median = 1;
    long long sets = 0;    ///< how many sets of survivors were evaluated
    bool is_exact = true;  ///< whether these are all sets; else random ones and those that lack cyclic neighbours

    friend bool operator==(const amplification_report&, const amplification_report&) = default;
};

/// Which sets of survivors are evaluated.
struct amplification_options {
    long long all_up_to = 20'000;  ///< all sets, if there are at most this many
    int samples = 1'000;           ///< otherwise this many random sets, and the n that lack cyclic neighbours
    std::uint64_t seed = 1;
};

namespace detail {

/// Returns C(n, k), or `most + 1` if it is more than `most`.
constexpr long long subsets(int n, int k, long long most) {
    long long count = 1;
    for (int i = 1; i <= std::min(k, n - k); ++i) {
        count = count * (n - i + 1) / i;
        if (count > most) return most + 1;
    }
    return count;
}

/// Calls `visit(lost)` with every set of `k` out of `n`, in ascending order of its members.
template <class Visit>
void for_each_subset(int n, int k, Visit&& visit) {
    std::vector<int> chosen(static_cast<std::size_t>(k));
    for (int i = 0; i < k; ++i) chosen[static_cast<std::size_t>(i)] = i;
    for (;;) {
        visit(std::as_const(chosen));
        int i = k - 1;
        while (i >= 0 && chosen[static_cast<std::size_t>(i)] == n - k + i) --i;
        if (i < 0) return;
        for (int value = chosen[static_cast<std::size_t>(i)] + 1; i < k; ++i)
            chosen[static_cast<std::size_t>(i)] = value++;
    }
}

/// Calls `visit(lost)` with `samples` random sets of `k` out of `n`, and with the n sets of cyclic neighbours. Members
/// ascend.
template <class Visit>
void for_some_subsets(int n, int k, int samples, std::uint64_t seed, Visit&& visit) {
    random_sequence random(random_key{seed}.derive(n, k));
    std::vector<int> order(static_cast<std::size_t>(n)), lost;
    for (int i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
    for (int sample = 0; sample < samples + n; ++sample) {
        lost.clear();
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
            if (sample < samples) {
                std::swap(order[i], order[i + random.below(order.size() - i)]);
                lost.push_back(order[i]);
            } else {
                lost.push_back((sample - samples + static_cast<int>(i)) % n);
            }
        }
        std::sort(lost.begin(), lost.end());
        visit(std::as_const(lost));
    }
}

/// Sets `left` to the members of `0 … n-1` that are not in `lost`, which ascends.
inline void complement(const std::vector<int>& lost, int n, std::vector<int>& left) {
    left.clear();
    std::size_t next = 0;
    for (int i = 0; i < n; ++i) {
        if (next < lost.size() && lost[next] == i)
            ++next;
        else
            left.push_back(i);
    }
}

}  // namespace detail

/// Measures a code's amplification.
///
/// A message that errs by ε, relative to the sum of the absolute values that it is made of, makes the decoded gradient
/// err by at most ε · amplification, relative to the gradients of the partitions.
///
/// Cost: one decoding row per set. Determinism: the sampled sets are a function of (n, s, options).
template <GradientCode Code>
amplification_report amplification(const Code& code, amplification_options options = {}) {
    const int n = code.workers(), s = code.stragglers();
    std::vector<double> lengths, row, all;
    for (int worker = 0; worker < n; ++worker) {
        double length = 0;
        for (const double coefficient : code.coefficients_of(worker)) length += std::abs(coefficient);
        lengths.push_back(length / code.partitions());
    }
    std::vector<int> left;
    const auto look = [&](const std::vector<int>& lost) {
        detail::complement(lost, n, left);
        if (!code.is_decodable(left)) {
            all.push_back(std::numeric_limits<double>::infinity());
            return;
        }
        row.resize(left.size());
        code.decoding_row(left, row);
        double sum = 0;
        for (std::size_t i = 0; i < left.size(); ++i)
            sum += std::abs(row[i]) * lengths[static_cast<std::size_t>(left[i])];
        all.push_back(sum);
    };
    amplification_report report;
    report.is_exact = detail::subsets(n, s, options.all_up_to) <= options.all_up_to;
    if (report.is_exact)
        detail::for_each_subset(n, s, look);
    else
        detail::for_some_subsets(n, s, options.samples, options.seed, look);
    std::sort(all.begin(), all.end());
    report.worst = all.back();
    report.median = all[all.size() / 2];
    report.sets = static_cast<long long>(all.size());
    return report;
}

}}}  // namespace rill::RILL_ABI::gradient_code
