// The laws of Aggregator, for any model.
#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/core/random.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

namespace rill::aggregate_tests {

/// Small whole numbers, of which sums are exact in every type, and the ends of what the type can hold.
template <class T>
std::vector<T> samples() {
    std::vector<T> all{T{0}, T{1}, T{-1}};
    random_sequence random(random_key{3});
    for (int i = 0; i < 9; ++i) all.push_back(static_cast<T>(random.below(2001)) - T{1000});
    return all;
}

template <class T, class Fold>
void check_laws(const Fold& fold) {
    static_assert(Aggregator<Fold, T>);
    const T neutral = fold.template identity<T>();
    for (T a : samples<T>()) {
        CHECK(fold.fold(neutral, a) == a);
        CHECK(fold.fold(a, neutral) == a);
        for (T b : samples<T>()) {
            if (Fold::is_commutative) CHECK(fold.fold(a, b) == fold.fold(b, a));
            for (T c : samples<T>()) CHECK(fold.fold(fold.fold(a, b), c) == fold.fold(a, fold.fold(b, c)));
        }
    }
    if (Fold::finish_is_trivial) {
        std::vector<T> values = samples<T>();
        fold.finish(std::span<T>(values), 3.0);
        CHECK(values == samples<T>());
    }
}

}  // namespace rill::aggregate_tests
