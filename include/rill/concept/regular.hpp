#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

/// Two values can be compared for equality. Like `std::equality_comparable`, but cheap for the compiler (see
/// `Regular`).
template <class T>
concept EqualityComparable = requires(const T& a) {
    a == a ? 0 : 1;
    a != a ? 0 : 1;
};

/// A value: it has a default, and is copied, assigned and compared. Like `std::regular`, which costs the compiler 60
/// times as much for each type, because it also goes through common references and swaps.
template <class T>
concept Regular = EqualityComparable<T> && requires(T& a, const T& b) {
    T();
    T(b);
    T(static_cast<T&&>(a));
    a = b;
    a = static_cast<T&&>(a);
};

}}  // namespace rill::RILL_ABI
