// rill's own time: integer nanoseconds, because <chrono> costs more to include than the whole core.
#pragma once

#include <rill/core/config.hpp>

#include <compare>
#include <cstdint>
#include <limits>

namespace rill::inline RILL_ABI {

/// A span of time in nanoseconds. Converts from anything shaped like `std::chrono::duration`.
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
    constexpr duration(const D& d)  // NOLINT(google-explicit-constructor): a lossless view of the same quantity
        : ns(static_cast<std::int64_t>(static_cast<long double>(d.count()) * 1e9L * D::period::num / D::period::den)) {}

    constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }

    friend constexpr auto operator<=>(duration, duration) = default;
    friend constexpr duration operator+(duration a, duration b) { return duration(a.ns + b.ns); }
    friend constexpr duration operator-(duration a, duration b) { return duration(a.ns - b.ns); }
    friend constexpr duration operator*(duration a, std::int64_t k) { return duration(a.ns * k); }
    friend constexpr duration operator/(duration a, std::int64_t k) { return duration(a.ns / k); }
};

constexpr duration nanoseconds(std::int64_t n) { return duration(n); }
constexpr duration microseconds(std::int64_t n) { return duration(n * 1'000); }
constexpr duration milliseconds(std::int64_t n) { return duration(n * 1'000'000); }
constexpr duration seconds(std::int64_t n) { return duration(n * 1'000'000'000); }

/// An instant on a transport's clock. Instants of different transports do not compare.
struct time_point {
    std::int64_t ns = 0;

    friend constexpr auto operator<=>(time_point, time_point) = default;
    friend constexpr duration operator-(time_point a, time_point b) { return duration(a.ns - b.ns); }
    friend constexpr time_point operator+(time_point t, duration d) {
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        return {d.ns > 0 && t.ns > most - d.ns ? most : t.ns + d.ns};
    }
};

/// When a wait gives up. A passed deadline is a value (an empty result), never an exception of the transport.
struct deadline {
    time_point at{};

    constexpr deadline() = default;
    constexpr deadline(time_point instant) : at(instant) {}  // NOLINT(google-explicit-constructor)

    /// Waits for ever.
    static const deadline never;
    /// Does not wait: takes what is there.
    static const deadline immediate;

    constexpr bool is_never() const { return at.ns == std::numeric_limits<std::int64_t>::max(); }
    constexpr bool is_immediate() const { return at.ns == std::numeric_limits<std::int64_t>::min(); }
    friend constexpr auto operator<=>(deadline, deadline) = default;
};

inline constexpr deadline deadline::never{time_point{std::numeric_limits<std::int64_t>::max()}};
inline constexpr deadline deadline::immediate{time_point{std::numeric_limits<std::int64_t>::min()}};

}  // namespace rill::inline RILL_ABI
