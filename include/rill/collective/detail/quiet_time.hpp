#pragma once

#include <rill/concept/detouring_topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A time that is measured again and again: smoothed, and its mean deviation.
struct smoothed_time {
    bool is_known = false;
    std::int64_t mean = 0;
    std::int64_t deviation = 0;

    /// Source: V. Jacobson, M. Karels, Congestion avoidance and control, 1988.
    constexpr void measure(std::int64_t ns) {
        if (!is_known) {
            *this = {true, ns, ns / 2};
            return;
        }
        const std::int64_t off = ns - mean;
        deviation += ((off < 0 ? -off : off) - deviation) / 4;
        mean += off / 8;
    }
    friend constexpr bool operator==(const smoothed_time&, const smoothed_time&) = default;
};

/// What one rank has measured of one of its links.
struct link_quiet {
    std::uint32_t open = 0;    ///< copies sent over the link and not acknowledged over it, in this operation
    time_point since{};        ///< the latest acknowledgement over the link, or the first of these copies
    std::int64_t longest = 0;  ///< ns in this operation for which an acknowledgement was awaited
    smoothed_time before{};    ///< of the operations before

    void sent(time_point now) {
        if (open++ == 0) since = now;
    }
};

/// How long a link may be quiet before it counts as silent: as long as it was in the operations before, with a margin,
/// and the time for the bytes that are on the way. The time is measured, or, if the topology says so, fixed.
class quiet_time {
  public:
    explicit quiet_time(detect how = {}) : how_(how) {}

    /// An operation begins. One of much more bytes than all before shows how long a link under load is quiet: what was
    /// measured before it is forgotten after it.
    void begin() {
        is_heavier_ = most_in_flight_ > 4 * known_load_;
        known_load_ = most_in_flight_;
        if (is_heavier_) any_ = {};
    }
    /// Takes what a link has shown in the operation before; after `begin`.
    void learn(link_quiet& over) {
        if (is_heavier_) over.before = {};
        if (over.longest != 0) {
            over.before.measure(over.longest);
            any_.measure(over.longest);
        }
        over.longest = 0;
        over.open = 0;
    }

    /// An acknowledgement has come over the link. Of a time for which it was called silent only so much counts as makes
    /// the next patience longer.
    void hear(link_quiet& over, bool is_called_silent, time_point now) const {
        if (over.open == 0) return;
        std::int64_t awaited = (now - over.since).ns;
        if (is_called_silent) awaited = std::min(awaited, 2 * most_of(known_of(over)));
        over.longest = std::max({over.longest, awaited, std::int64_t{1}});
        over.since = now;
        --over.open;
    }
    /// A message was acknowledged `took` after it was sent. `in_flight`: bytes on the way then, its own among them.
    void measure(std::size_t in_flight, duration took) {
        const double seen = static_cast<double>(in_flight) / static_cast<double>(std::max<std::int64_t>(took.ns, 1));
        if (in_flight > 4 * most_in_flight_)
            rate_ = seen;
        else if (in_flight >= most_in_flight_ / 2)
            rate_ += (seen - rate_) / 8;
        most_in_flight_ = std::max(most_in_flight_, in_flight);
    }

    /// How long to wait for the acknowledgement of a message of `bytes` that goes over this link, to its target or by
    /// way of another rank.
    duration patience(const link_quiet& over, bool is_detour, std::size_t bytes, std::size_t in_flight) const {
        const smoothed_time& quiet = known_of(over);
        if (!how_.is_adaptive || !quiet.is_known || rate_ == 0) return how_.first;
        // How long a link is quiet is not known of a detour, nor under more load than ever before.
        const bool is_heavier = in_flight > 4 * known_load_;
        const std::size_t before = !is_detour && !is_heavier ? bytes : std::max(in_flight, most_in_flight_);
        const auto transfer = static_cast<std::int64_t>(2 * static_cast<double>(before) / rate_);
        const duration once = duration(most_of(quiet) + transfer) * (is_detour ? 2 : 1);
        return is_heavier ? std::max(once, how_.first) : once;
    }

  private:
    /// Of a link that is not known, what is known of all.
    const smoothed_time& known_of(const link_quiet& over) const { return over.before.is_known ? over.before : any_; }
    std::int64_t most_of(const smoothed_time& quiet) const {
        return quiet.mean + std::max(4 * quiet.deviation, how_.least.ns);
    }

    detect how_;
    smoothed_time any_{};  ///< of all links
    double rate_ = 0;      ///< bytes per nanosecond
    std::size_t most_in_flight_ = 0;
    std::size_t known_load_ = 0;  ///< that of the operations before this one
    bool is_heavier_ = false;     ///< the operation before this one than all before it
};

}}}  // namespace rill::RILL_ABI::detail
