#pragma once

#include <rill/concept/joint_aggregator.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/aggregator_laws.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Whether rotations and the reverse of the values give the same result, with bits of zeros but not of NaNs compared.
template <Element T, class A>
bool ignores_order(const A& aggregator, const std::vector<T>& values) {
    for (std::size_t count = 1; count <= values.size(); ++count) {
        std::vector<T> order(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
        std::vector<T> room = order;
        const T wanted = aggregator.combine(std::span<T>(room));
        for (std::size_t turn = 0; turn < 2 * count; ++turn) {
            std::rotate(order.begin(), order.begin() + 1, order.end());
            if (turn % 2 == 1) std::reverse(order.begin(), order.end());
            room = order;
            if (!is_same_value(aggregator.combine(std::span<T>(room)), wanted)) return false;
        }
    }
    return true;
}

template <Element T, class A>
bool agrees_with_all(const A& aggregator) {
    std::vector<T> samples = law_samples<T>();
    samples.push_back(std::numeric_limits<T>::max());
    if constexpr (std::floating_point<T>) samples.push_back(T(0.1));
    for (const T value : samples)
        for (std::size_t count = 1; count <= 9; ++count) {
            std::vector<T> equal(count, value);
            if (aggregator.combine(std::span<T>(equal)) != value) return false;
        }
    return true;
}

}  // namespace detail

/// Checks a `JointAggregator` against the laws of the concept, on elements of type T.
///
/// `visit(const char* name, const law_outcome&)` is called once per law.
template <Element T, JointAggregator<T> A, class Visit>
void for_each_joint_aggregator_law(const A& aggregator, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(A::name) + ": " + otherwise});
    };
    law("the order of contributions does not matter",
        detail::ignores_order<T>(aggregator, detail::law_samples<T>()) &&
            detail::ignores_order<T>(aggregator, detail::law_special_samples<T>()),
        "combine gives another value where ranks contribute the same values in another order");
    law("the result of equal contributions is that value", detail::agrees_with_all<T>(aggregator),
        "combine gives another value than the one that all contribute");
    law("a group of one rank or more is enough", aggregator.least_ranks() >= 1, "least_ranks() is less than 1");
}

}}}  // namespace rill::RILL_ABI::testing
