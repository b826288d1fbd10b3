#include <rill/core/function_ref.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>

using rill::function_ref;

namespace {

int apply(function_ref<int(int)> body, int argument) { return body(argument); }
int twice(int x) { return 2 * x; }

}  // namespace

TEST_CASE("a function_ref calls what it refers to") {
    int calls = 0;
    const auto count = [&](int x) { return x + ++calls; };
    CHECK(apply(count, 1) == 2);
    CHECK(apply(count, 1) == 3);
    CHECK(apply([total = 5](int x) mutable { return total += x; }, 2) == 7);
    CHECK(apply(&twice, 4) == 8);
    const function_ref<int(int)> first = count;
    const function_ref<int(int)> copy = first;  // refers to the callable, not to the first reference
    CHECK(copy(0) == 3);
}

TEST_CASE("a function_ref passes arguments on and takes only callables that fit") {
    const auto unwrap = [](std::unique_ptr<int> given) { return *given; };
    const function_ref<int(std::unique_ptr<int>)> by_value = unwrap;
    CHECK(by_value(std::make_unique<int>(9)) == 9);
    int seen = 0;
    const auto set = [](int& out) { out = 4; };
    const function_ref<void(int&)> by_reference = set;
    by_reference(seen);
    CHECK(seen == 4);
    static_assert(!std::is_constructible_v<function_ref<int(int)>, decltype(twice)&>);
    static_assert(!std::is_constructible_v<function_ref<int(int)>, decltype(set)&>);
    static_assert(!std::is_constructible_v<function_ref<void()>, decltype(unwrap)&>);
    // Any result will do for none, none for no result; others are converted where that needs no cast.
    const auto none = [] {};
    const auto whole = [] { return 3; };
    const auto asked = [] { return std::make_unique<int>(3); };
    static_assert(std::is_constructible_v<function_ref<void()>, decltype(whole)&>);
    static_assert(std::is_constructible_v<function_ref<double()>, decltype(whole)&>);
    static_assert(!std::is_constructible_v<function_ref<int()>, decltype(none)&>);
    static_assert(std::is_constructible_v<bool, decltype(asked())>);
    static_assert(!std::is_constructible_v<function_ref<bool()>, decltype(asked)&>);
    static_assert(!std::is_constructible_v<function_ref<int()>, int&>);
}
