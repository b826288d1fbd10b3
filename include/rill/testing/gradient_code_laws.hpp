#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/gradient_code/amplification.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Calls `visit(survivors)` with all sets that lack `lost` workers if there are at most `most`, else with some of them.
template <class Visit>
void for_survivors(int workers, int lost, int most, Visit&& visit) {
    std::vector<int> left;
    const auto turn = [&](const std::vector<int>& missing) {
        gradient_code::detail::complement(missing, workers, left);
        visit(left);
    };
    if (gradient_code::detail::subsets(workers, lost, most) <= most)
        gradient_code::detail::for_each_subset(workers, lost, turn);
    else
        gradient_code::detail::for_some_subsets(workers, lost, most, 1, turn);
}

/// Returns a·B − 1, where `row` holds the elements of a for the survivors.
template <class Code>
std::vector<double> remainder(const Code& code, const std::vector<int>& survivors, const std::vector<double>& row) {
    std::vector<double> left(static_cast<std::size_t>(code.partitions()), -1.0);
    for (std::size_t i = 0; i < survivors.size(); ++i) {
        const std::span<const int> at = code.partitions_of(survivors[i]);
        const std::span<const double> with = code.coefficients_of(survivors[i]);
        for (std::size_t j = 0; j < at.size(); ++j) left[static_cast<std::size_t>(at[j])] += row[i] * with[j];
    }
    return left;
}

template <class Code>
bool allocates(const Code& code) {
    std::vector<int> held(static_cast<std::size_t>(code.partitions()));
    for (int worker = 0; worker < code.workers(); ++worker) {
        const std::span<const int> at = code.partitions_of(worker);
        if (at.size() != std::span<const double>(code.coefficients_of(worker)).size()) return false;
        for (std::size_t j = 0; j < at.size(); ++j) {
            if (at[j] < 0 || at[j] >= code.partitions() || (j > 0 && at[j - 1] >= at[j])) return false;
            ++held[static_cast<std::size_t>(at[j])];
        }
    }
    return std::ranges::all_of(held, [&](int count) { return count > code.stragglers(); });
}

template <class Code>
bool reaches_one(const Code& code, const std::vector<int>& survivors) {
    if (!code.is_decodable(survivors)) return false;
    std::vector<double> row(survivors.size());
    code.decoding_row(survivors, row);
    return std::ranges::all_of(remainder(code, survivors, row), [](double left) { return std::abs(left) < 1e-6; });
}

template <class Code>
bool order_does_not_matter(const Code& code, const std::vector<int>& given) {
    std::vector<int> survivors = given;
    std::vector<double> row(survivors.size()), turned(survivors.size()), again(survivors.size());
    code.decoding_row(survivors, row);
    code.decoding_row(survivors, again);
    std::ranges::reverse(survivors);
    code.decoding_row(survivors, turned);
    std::ranges::reverse(turned);
    return row == turned && row == again;
}

/// Whether no survivor can make the remainder shorter, and its length is the one that was returned.
template <class Code>
bool is_closest(const Code& code, const std::vector<int>& survivors) {
    std::vector<double> row(survivors.size());
    const double error = code.approximate_row(survivors, row);
    const std::vector<double> left = remainder(code, survivors, row);
    double squares = 0;
    for (const double value : left) squares += value * value;
    if (std::abs(std::sqrt(squares) - error) > 1e-5 || code.is_decodable(survivors) != (error == 0)) return false;
    return std::ranges::all_of(survivors, [&](int worker) {
        const std::span<const int> at = code.partitions_of(worker);
        const std::span<const double> with = code.coefficients_of(worker);
        double along = 0, length = 0;
        for (std::size_t j = 0; j < at.size(); ++j) {
            along += with[j] * left[static_cast<std::size_t>(at[j])];
            length += std::abs(with[j]);
        }
        return std::abs(along) <= 1e-6 * length;
    });
}

/// Whether no set of fewer than `least_survivors()` is decodable, and the number is not above what the code promises.
template <SmallSetCode Code>
bool needs_least_survivors(const Code& code, int most) {
    const int n = code.workers(), least = code.least_survivors();
    bool held = least >= 1 && least <= n - code.stragglers();
    for (int lost = n - std::max(least, 1) + 1; lost < n; ++lost)
        for_survivors(n, lost, most, [&](const std::vector<int>& left) { held = held && !code.is_decodable(left); });
    return held;
}

template <class Code>
bool refuses(const Code& code, const std::vector<int>& survivors) {
    std::vector<double> row(survivors.size());
    try {
        code.decoding_row(survivors, row);
    } catch (const contract_violation&) {
        return true;
    }
    return false;
}

}  // namespace detail

/// Checks a gradient code against the laws of the concept: on all sets of survivors if there are at most `most`, else
/// on `most` random sets and those that lack neighbouring workers.
///
/// `visit(const char* name, const law_outcome&)` is called once per law. Contracts must be checked (level fast). A law
/// whose check throws does not hold.
template <GradientCode Code, class Visit>
void for_each_gradient_code_law(const Code& code, Visit&& visit, int most = 500) {
    const int n = code.workers(), s = code.stragglers();
    const auto law = [&](const char* name, auto&& holds, const char* otherwise) {
        law_outcome outcome;
        try {
            if (!holds()) outcome = {.held = false, .what = otherwise};
        } catch (const std::exception& thrown) {
            outcome = {.held = false, .what = thrown.what()};
        }
        if (!outcome.held) outcome.what = "(" + std::to_string(n) + ", " + std::to_string(s) + "): " + outcome.what;
        visit(name, std::as_const(outcome));
    };
    const auto of_all = [&](int lost, bool (*check)(const Code&, const std::vector<int>&)) {
        bool held = true;
        detail::for_survivors(n, lost, most, [&](const std::vector<int>& left) { held = held && check(code, left); });
        return held;
    };
    std::vector<int> everyone;
    gradient_code::detail::complement({}, n, everyone);

    law(
        "more workers than stragglers hold each partition", [&] { return detail::allocates(code); },
        "partitions_of is not ascending, or some partition is held by too few");
    law(
        "any n-s survivors reach 1", [&] { return of_all(s, detail::reaches_one<Code>); },
        "some n-s survivors have no row that gives every partition once");
    law(
        "more survivors reach 1 as well",
        [&] { return detail::reaches_one(code, everyone) && (s == 0 || of_all(1, detail::reaches_one<Code>)); },
        "some set that lacks at most one worker has no decoding row");
    law(
        "neither order nor history changes a row", [&] { return of_all(s, detail::order_does_not_matter<Code>); },
        "the same survivors get different bits");
    law(
        "an approximate row is the closest", [&] { return s + 1 == n || of_all(s + 1, detail::is_closest<Code>); },
        "||aB - 1|| is not what was returned, or is not least");
    law(
        "an empty set of survivors is not decodable",
        [&] { return !code.is_decodable({}) && detail::refuses(code, {}); }, "a gradient is decoded from nothing");
    if constexpr (SmallSetCode<Code>)
        law(
            "fewer than least_survivors() are not decodable", [&] { return detail::needs_least_survivors(code, most); },
            "least_survivors() is above n-s, or a smaller set is decodable");
    law(
        "a worker survives once",
        [&] {
            return detail::refuses(code, {0, 0});
        },
        "a worker that is listed twice is accepted");
    law(
        "only workers survive", [&] { return detail::refuses(code, {n}); }, "a survivor that is no worker is accepted");
}

}}}  // namespace rill::RILL_ABI::testing
