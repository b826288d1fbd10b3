#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// The measured time of a round trip of a message.
struct round_trip {
    std::uint64_t bytes = 0;
    duration time{};
};

/// Returns the number between two bounds with the fewest digits, in bytes per second.
inline std::uint64_t roundest_between(double least, double most) {
    for (double unit = 1e18; unit > 1; unit /= 10)
        if (const double multiple = std::ceil(least / unit) * unit; multiple > 0 && multiple <= most)
            return static_cast<std::uint64_t>(multiple);
    return static_cast<std::uint64_t>(std::llround((least + most) / 2));
}

/// Returns the link of the given latency that explains all times to the nanosecond, if there is one. Times determine
/// the bandwidth only up to their resolution; the roundest possible bandwidth is taken.
inline std::optional<network_link> exact_link(std::span<const round_trip> trips, duration latency) {
    if (latency < duration{}) return std::nullopt;
    double least = 0, most = 1e18;
    for (const round_trip& each : trips) {
        const auto on_link = static_cast<double>((each.time / 2 - latency).ns);
        const double ideal = static_cast<double>(each.bytes) * 1e9;
        if (on_link < 1) return std::nullopt;
        least = std::max(least, ideal / on_link);
        if (on_link > 1) most = std::min(most, ideal / (on_link - 1));
    }
    const network_link found{latency, roundest_between(least, most)};
    for (const round_trip& each : trips)
        if (each.time != (latency + transfer_time(each.bytes, found.bandwidth)) * 2) return std::nullopt;
    return found;
}

/// Returns the link, of any latency, that explains all times to the nanosecond, as between simulated ranks. `trips`
/// ascend in bytes.
inline std::optional<network_link> exact_link(std::span<const round_trip> trips) {
    const round_trip &small = trips.front(), &large = trips.back();
    if (large.time == small.time) {
        const network_link found{small.time / 2, 0};
        for (const round_trip& each : trips)
            if (each.time != found.latency * 2) return std::nullopt;
        return found;
    }
    const double share = static_cast<double>(small.bytes) / static_cast<double>(large.bytes - small.bytes);
    const auto guess = static_cast<std::int64_t>(static_cast<double>((large.time - small.time).ns) / 2 * share);
    for (std::int64_t on_link = std::max<std::int64_t>(guess - 1, 1); on_link <= guess + 2; ++on_link)
        if (const auto found = exact_link(trips, small.time / 2 - nanoseconds(on_link))) return found;
    return std::nullopt;
}

/// Fits a link by least squares of the relative errors, so that short messages count as much as long ones.
inline network_link nearest_link(std::span<const round_trip> trips) {
    double ones = 0, sizes = 0, squares = 0, times = 0, products = 0;
    for (const round_trip& each : trips) {
        const auto n = static_cast<double>(each.bytes);
        const double t = std::max(1.0, static_cast<double>(each.time.ns) / 2), weight = 1 / (t * t);
        ones += weight;
        sizes += weight * n;
        squares += weight * n * n;
        times += weight * t;
        products += weight * n * t;
    }
    const double spread = ones * squares - sizes * sizes;
    const double per_byte = spread > 0 ? (ones * products - sizes * times) / spread : 0;
    const double rest = (times - std::max(per_byte, 0.0) * sizes) / ones;
    if (rest < 0) return {.latency = {}, .bandwidth = static_cast<std::uint64_t>(squares / products * 1e9)};
    return {.latency = duration(std::llround(rest)),
            .bandwidth = per_byte > 1e-9 ? static_cast<std::uint64_t>(std::llround(1e9 / per_byte)) : 0};
}

inline network_link fit_link(std::span<const round_trip> trips) {
    const auto exact = exact_link(trips);
    return exact ? *exact : nearest_link(trips);
}

/// The bandwidth by which the longest messages take longer than the next shorter ones, where no link explains all times
/// to the nanosecond: queues and bursts let short messages pass faster than a line that is busy. 0: no limit is seen.
inline std::uint64_t speed_of_long(std::span<const round_trip> trips) {
    if (const auto exact = exact_link(trips)) return exact->bandwidth;
    const round_trip &longest = trips.back(), &next = trips[trips.size() - 2];
    const double seconds = (longest.time - next.time).seconds() / 2;
    if (seconds <= 0) return nearest_link(trips).bandwidth;
    return static_cast<std::uint64_t>(static_cast<double>(longest.bytes - next.bytes) / seconds);
}

/// A link on which messages of `round_trip_from` bytes or more cost a round trip more than shorter ones, or which lets
/// `at_once` bytes pass after a pause before its bandwidth limits them; 0: it does not.
struct stepped_link {
    network_link link{};
    std::uint64_t round_trip_from = 0;
    std::uint64_t at_once = 0;
};

/// The bytes by which each of the three longest messages at least is faster than the link would let it pass. Less than
/// a tenth of the shortest of them is taken for noise.
inline std::uint64_t bytes_at_once(const network_link& link, std::span<const round_trip> trips) {
    if (trips.size() < 4 || link.bandwidth == 0) return 0;
    const auto longest = trips.last(3);
    double least = static_cast<double>(longest.back().bytes);
    for (const round_trip& each : longest) {
        const duration saved = link.latency + transfer_time(each.bytes, link.bandwidth) - each.time / 2;
        least = std::min(least, saved.seconds() * static_cast<double>(link.bandwidth));
    }
    return least * 10 < static_cast<double>(longest.front().bytes) ? 0 : static_cast<std::uint64_t>(least);
}

/// The sum of the squared relative errors with which a link explains times.
inline double error_of(const network_link& link, std::span<const round_trip> trips) {
    double sum = 0;
    for (const round_trip& each : trips) {
        const double error = 2 * (link.latency + transfer_time(each.bytes, link.bandwidth)).seconds() /
                                 std::max(each.time, nanoseconds(1)).seconds() -
                             1;
        sum += error * error;
    }
    return sum;
}

/// Fits a link to short messages and one to long ones, and takes them where they explain the times much better than one
/// link, and where the long ones have at least twice the latency. Otherwise the longest messages say the bandwidth.
/// `trips` ascend in bytes.
inline stepped_link fit_stepped_link(std::span<const round_trip> trips) {
    if (const auto exact = exact_link(trips)) return {.link = *exact};
    stepped_link best{.link = nearest_link(trips)};
    double least = error_of(best.link, trips) / 4;
    for (std::size_t i = 2; i + 2 <= trips.size(); ++i) {
        const auto small = trips.first(i), large = trips.subspan(i);
        const network_link of_small = nearest_link(small), of_large = nearest_link(large);
        const double error = error_of(of_small, small) + error_of(of_large, large);
        if (error >= least || of_large.latency < of_small.latency * 2) continue;
        least = error;
        best = {{of_small.latency, of_large.bandwidth}, large.front().bytes};
    }
    if (best.round_trip_from != 0) return best;
    best.link.bandwidth = speed_of_long(trips);
    best.at_once = bytes_at_once(best.link, trips);
    return best;
}

}}}  // namespace rill::RILL_ABI::cost::detail
