// rill's own time: integer nanoseconds, because <chrono> costs more to include than the whole core.
#pragma once

#include <rill/core/config.hpp>

#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

namespace detail {

constexpr std::int64_t least_ns = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most_ns = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
    if (b > 0 && a > most_ns - b) return most_ns;
    if (b < 0 && a < least_ns - b) return least_ns;
    return a + b;
}
constexpr std::int64_t saturated_difference(std::int64_t a, std::int64_t b) {
    if (b < 0 && a > most_ns + b) return most_ns;
    if (b > 0 && a < least_ns + b) return least_ns;
    return a - b;
}
constexpr std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
    if (a == 0 || b == 0) return 0;
    const bool negative = (a < 0) != (b < 0);
    const auto magnitude = [](std::int64_t x) {
        return x < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    };
    const std::uint64_t most = static_cast<std::uint64_t>(most_ns) + (negative ? 1U : 0U);
    if (magnitude(a) > most / magnitude(b)) return negative ? least_ns : most_ns;
    const std::uint64_t product = magnitude(a) * magnitude(b);
    return static_cast<std::int64_t>(negative ? std::uint64_t{0} - product : product);
}

/// Converts `count` periods of num / den seconds to nanoseconds; rounds towards zero and saturates.
template <std::int64_t num, std::int64_t den, class Count>
constexpr std::int64_t to_nanoseconds(Count count) {
    constexpr std::int64_t per_second = 1'000'000'000;
    if constexpr (std::is_integral_v<Count>) {
        constexpr std::int64_t common = std::gcd(num * per_second, den);
        return saturated_product(count, num * per_second / common) / (den / common);
    } else {
        const long double ns = static_cast<long double>(count) * num * per_second / den;
        if (ns >= 0x1p63L) return most_ns;
        return ns > -0x1p63L ? static_cast<std::int64_t>(ns) : least_ns;
    }
}

}  // namespace detail

/// A span of time in nanoseconds. Converts implicitly from any type with the interface of `std::chrono::duration`.
/// Arithmetic saturates at the ends of the range, about ±292 years.
struct duration {
    std::int64_t ns = 0;

    constexpr duration() = default;
    constexpr explicit duration(std::int64_t nanoseconds) : ns(nanoseconds) {}

    template <class D>
        requires requires(const D& d) {
            d.count();
            D::period::num;
            D::period::den;
        }
    constexpr duration(const D& d)  // NOLINT(google-explicit-constructor): a view of the same quantity
        : ns(detail::to_nanoseconds<D::period::num, D::period::den>(d.count())) {}

    constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }

    friend constexpr auto operator<=>(duration, duration) = default;
    friend constexpr duration operator+(duration a, duration b) { return duration(detail::saturated_sum(a.ns, b.ns)); }
    friend constexpr duration operator-(duration a, duration b) {
        return duration(detail::saturated_difference(a.ns, b.ns));
    }
    friend constexpr duration operator*(duration a, std::int64_t k) {
        return duration(detail::saturated_product(a.ns, k));
    }
    friend constexpr duration operator/(duration a, std::int64_t k) {
        return k == -1 ? a * -1 : duration(a.ns / k);  // least / -1 would overflow; a product saturates
    }
};

/// A duration of `n` nanoseconds.
constexpr duration nanoseconds(std::int64_t n) { return duration(n); }
/// A duration of `n` microseconds; saturates.
constexpr duration microseconds(std::int64_t n) { return duration(1'000) * n; }
/// A duration of `n` milliseconds; saturates.
constexpr duration milliseconds(std::int64_t n) { return duration(1'000'000) * n; }
/// A duration of `n` seconds; saturates.
constexpr duration seconds(std::int64_t n) { return duration(1'000'000'000) * n; }

/// The time that `bytes` take at `bandwidth` bytes per second, rounded up; saturates. A bandwidth of 0 means unlimited:
/// the result is 0.
constexpr duration transfer_time(std::uint64_t bytes, std::uint64_t bandwidth) {
    if (bandwidth == 0) return {};
    __extension__ using wide = unsigned __int128;
    const wide ns = (wide{bytes} * 1'000'000'000U + bandwidth - 1) / bandwidth;
    return duration(ns > static_cast<wide>(detail::most_ns) ? detail::most_ns : static_cast<std::int64_t>(ns));
}

/// An instant on a transport's clock. Instants of different transports are not comparable.
struct time_point {
    std::int64_t ns = 0;

    friend constexpr auto operator<=>(time_point, time_point) = default;
    friend constexpr duration operator-(time_point a, time_point b) { return duration(a.ns) - duration(b.ns); }
    friend constexpr time_point operator+(time_point t, duration d) { return {detail::saturated_sum(t.ns, d.ns)}; }
};

/// The instant at which a wait gives up. A transport then returns an empty result or false; a passed deadline is never
/// an exception of the transport.
struct deadline {
    time_point at{};

    constexpr deadline() = default;
    constexpr deadline(time_point instant) : at(instant) {}  // NOLINT(google-explicit-constructor)

    /// A wait with this deadline never gives up.
    static const deadline never;
    /// A wait with this deadline returns at once, with what is already there.
    static const deadline immediate;

    constexpr bool is_never() const { return at.ns == std::numeric_limits<std::int64_t>::max(); }
    constexpr bool is_immediate() const { return at.ns == std::numeric_limits<std::int64_t>::min(); }
    friend constexpr auto operator<=>(deadline, deadline) = default;
};

inline constexpr deadline deadline::never{time_point{std::numeric_limits<std::int64_t>::max()}};
inline constexpr deadline deadline::immediate{time_point{std::numeric_limits<std::int64_t>::min()}};

}}  // namespace rill::RILL_ABI
