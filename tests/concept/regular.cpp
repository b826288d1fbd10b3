#include <rill/concept/regular.hpp>

#include <array>
#include <concepts>
#include <string>
#include <vector>

using namespace rill;

namespace values {

struct value {
    int number = 0;
    friend bool operator==(const value&, const value&) = default;
};
struct without_comparison {};
struct without_default {
    explicit without_default(int);
    friend bool operator==(const without_default&, const without_default&) = default;
};
struct without_copy {
    without_copy() = default;
    without_copy(const without_copy&) = delete;
    without_copy(without_copy&&) = default;
    without_copy& operator=(const without_copy&) = default;
    friend bool operator==(const without_copy&, const without_copy&) = default;
};
struct without_move {
    without_move() = default;
    without_move(const without_move&) = default;
    without_move(without_move&&) = delete;
    without_move& operator=(const without_move&) = default;
    friend bool operator==(const without_move&, const without_move&) = default;
};
struct without_assignment {
    const int number = 0;
    friend bool operator==(const without_assignment&, const without_assignment&) = default;
};
struct compared_to_nothing {
    friend void operator==(const compared_to_nothing&, const compared_to_nothing&);
};

template <class... T>
constexpr bool agree_with_the_standard_library =
    ((Regular<T> == std::regular<T> && EqualityComparable<T> == std::equality_comparable<T>)&&...);

}  // namespace values

using namespace values;

static_assert(Regular<value> && Regular<int> && Regular<std::vector<std::string>>);
static_assert(!Regular<without_comparison> && !EqualityComparable<without_comparison>);
static_assert(!Regular<without_default> && EqualityComparable<without_default>);
static_assert(!Regular<without_copy> && !Regular<without_move> && !Regular<without_assignment>);
static_assert(!EqualityComparable<compared_to_nothing>);
static_assert(agree_with_the_standard_library<value, int, double, std::array<float, 3>, std::vector<std::string>, int&,
                                              const int, void, value*, without_comparison, without_default,
                                              without_copy, without_move, without_assignment, compared_to_nothing>);
