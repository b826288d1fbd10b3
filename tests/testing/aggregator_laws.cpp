#include <rill/testing/aggregator_laws.hpp>

#include <rill/aggregate/max.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace {

using namespace rill;

/// A sum that breaks one law at a time.
enum class fault { none, identity, associativity, order, addition, finish };

template <fault what>
struct faulty_sum {
    static constexpr const char* name = "faulty_sum";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        return what == fault::identity ? T{1} : T{0};
    }
    template <class T>
    static constexpr T fold(T a, T b) {
        if (what == fault::associativity && a != T{0} && b != T{0}) return (a + b) * T{2};
        if (what == fault::order && a != T{0} && b != T{0}) return a;
        if (what == fault::addition) return static_cast<T>(static_cast<std::int64_t>(a) ^ static_cast<std::int64_t>(b));
        return a + b;
    }
    template <class T>
    static constexpr void finish(std::span<T> values, double) {
        if (what == fault::finish) values[0] += T{1};
    }
    friend constexpr bool operator==(faulty_sum, faulty_sum) = default;
};

template <fault what, class T = float>
std::string broken() {
    std::string names;
    testing::for_each_aggregator_law<T>(faulty_sum<what>{}, [&](const char* name, const testing::law_outcome& outcome) {
        CHECK(outcome.held == outcome.what.empty());
        if (!outcome.held) names += std::string(name) + "; ";
    });
    return names;
}

}  // namespace

namespace {

/// The largest value by `<` alone, as a beginner would write it: keeps a NaN on the left, drops a NaN on the right.
struct naive_max : rill::aggregate::max {
    template <class T>
    static constexpr T fold(T a, T b) {
        return a < b ? b : a;
    }
};

/// A maximum that takes the lowest finite value for its identity.
struct finite_max : rill::aggregate::max {
    template <class T>
    static constexpr T identity() {
        return std::numeric_limits<T>::lowest();
    }
};

}  // namespace

TEST_CASE("an identity that is not neutral to infinity breaks a law") {
    std::string names;
    testing::for_each_aggregator_law<float>(finite_max{}, [&](const char* name, const testing::law_outcome& outcome) {
        if (!outcome.held) names += std::string(name) + "; ";
    });
    CHECK(names == "the identity is neutral; ");
}

TEST_CASE("a fold that ignores NaN and signed zeros breaks a law") {
    std::string names;
    testing::for_each_aggregator_law<float>(naive_max{}, [&](const char* name, const testing::law_outcome& outcome) {
        if (!outcome.held) names += std::string(name) + "; ";
    });
    CHECK(names ==
          "the identity is neutral; a fold is associative with NaN, infinities and zeros of both signs; "
          "a fold commutes with NaN, infinities and zeros of both signs; ");
}

TEST_CASE("a correct sum breaks no law") {
    CHECK(broken<fault::none>() == "");
    CHECK(broken<fault::none, std::int64_t>() == "");
}

TEST_CASE("each fault breaks its law") {
    CHECK(broken<fault::identity>() == "the identity is neutral; ");
    CHECK(broken<fault::associativity, std::int64_t>() == "a fold is associative; a fold adds where it says so; ");
    CHECK(broken<fault::order, std::int64_t>() == "a fold commutes where it says so; a fold adds where it says so; ");
    CHECK(broken<fault::addition, std::int64_t>() == "a fold adds where it says so; ");
    CHECK(broken<fault::finish>() == "a trivial finish changes nothing; ");
}
