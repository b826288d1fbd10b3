#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/detail/fit_link.hpp>
#include <rill/cost/detail/probe_messages.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// What was measured of a link alone and under load. Speeds are in bytes per second; 0 is one without limit.
struct measured_link {
    network_link link{};                ///< one message at a time, as by `measure_link`
    std::uint64_t both_ways = 0;        ///< of each way, while both ways between two ranks are in use
    std::uint64_t all_to_one = 0;       ///< of what one rank receives from all others at once
    std::uint64_t one_to_all = 0;       ///< of what one rank sends to all others at once
    std::uint64_t round_trip_from = 0;  ///< the bytes from which a message costs a round trip more; 0: none does
    std::uint64_t at_once = 0;          ///< the bytes that pass after a pause before the bandwidth limits them

    friend bool operator==(const measured_link&, const measured_link&) = default;
};

namespace detail {

/// One rank's part in the measurement of a link alone and under load.
template <class Net>
class loaded_probe {
  public:
    explicit loaded_probe(const link_probe& probe) : probe_(probe), alone_(probe), messages_(probe.largest_bytes) {}

    std::size_t largest() const { return messages_.largest(); }

    /// Runs the rank's part. This object must live until the operation ends, because its messages are read until then.
    measured_link run(exchange<Net>& call) {
        const rank_t self = call.net().rank();
        if (self == probe_.from) {
            measure(call);
            for_each_other(call, [&](rank_t other) { messages_.send(call, other, figures_); });
        } else {
            if (self == probe_.to) {
                alone_.answer(call);
                answer(call, load::both_ways);
            }
            answer(call, load::to_one);
            answer(call, load::to_all);
            messages_.receive(call, probe_.from, figures_.size(), [&](std::span<const std::int32_t> values) {
                std::copy(values.begin(), values.end(), figures_.begin());
            });
        }
        return {.link = {duration(static_cast<std::int64_t>(read(0))), read(1)},
                .both_ways = read(2),
                .all_to_one = read(3),
                .one_to_all = read(4),
                .round_trip_from = read(5),
                .at_once = read(6)};
    }

  private:
    enum class load : std::uint8_t { both_ways, to_one, to_all };

    /// A figure takes two elements of a message.
    void write(std::size_t i, std::uint64_t figure) {
        figures_[2 * i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(figure));
        figures_[2 * i + 1] = static_cast<std::int32_t>(static_cast<std::uint32_t>(figure >> 32));
    }
    std::uint64_t read(std::size_t i) const {
        return static_cast<std::uint32_t>(figures_[2 * i]) |
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(figures_[2 * i + 1])) << 32;
    }

    template <class Visit>
    static void for_each_other(exchange<Net>& call, Visit&& visit) {
        for (rank_t other = 0; other < call.net().size(); ++other)
            if (other != call.net().rank()) visit(other);
    }

    void measure(exchange<Net>& call) {
        const stepped_link found = fit_stepped_link(alone_.trips(call));
        write(0, static_cast<std::uint64_t>(found.link.latency.ns));
        write(1, found.link.bandwidth);
        write(5, found.round_trip_from);
        write(6, found.at_once);
        write(2, speed(call, [&](std::size_t count) {
                  messages_.send(call, probe_.to, messages_.zeros(0));
                  messages_.send(call, probe_.to, messages_.zeros(count));
                  messages_.receive(call, probe_.to, count);
              }));
        const std::uint64_t of_each = speed(call, [&](std::size_t count) {
            for_each_other(call, [&](rank_t other) { messages_.send(call, other, messages_.zeros(0)); });
            for_each_other(call, [&](rank_t other) { messages_.receive(call, other, count); });
        });
        const std::uint64_t to_each = speed(call, [&](std::size_t count) {
            for_each_other(call, [&](rank_t other) { messages_.send(call, other, messages_.zeros(count)); });
            for_each_other(call, [&](rank_t other) { messages_.receive(call, other, 0); });
        });
        const auto others = static_cast<std::uint64_t>(call.net().size() - 1);
        write(3, of_each * others);
        write(4, to_each * others);
    }
    /// Each trip is a message of `count` elements one way, and an empty one the other way. What a longer one takes more
    /// is its way alone. `fit_link` expects it twice, of there and back.
    template <class Trip>
    std::uint64_t speed(exchange<Net>& call, Trip&& trip) {
        std::vector<round_trip> trips;
        messages_.for_each_size([&](std::size_t count) {
            const duration time = messages_.median_time(call, probe_.repetitions, [&] { trip(count); });
            trips.push_back({messages_.bytes(count), trips.empty() ? time : time * 2 - trips.front().time});
        });
        return speed_of_long(trips);
    }
    /// Answers the messages that `measure` sends.
    void answer(exchange<Net>& call, load kind) {
        messages_.for_each_size([&](std::size_t count) {
            for (int i = -1; i < probe_.repetitions; ++i) {
                messages_.receive(call, probe_.from, kind == load::to_all ? count : 0);
                messages_.send(call, probe_.from, messages_.zeros(kind == load::to_all ? 0 : count));
                if (kind == load::both_ways) messages_.receive(call, probe_.from, count);
            }
        });
    }

    link_probe probe_;
    ping_pong<Net> alone_;
    probe_messages<Net> messages_;
    std::array<std::int32_t, 14> figures_{};
};

}  // namespace detail

/// Measures a link alone, as `measure_link` does, and under load: with both ways between `probe.from` and `probe.to` in
/// use at once, with all other ranks sending to `probe.from` at once, and with it sending to all of them. Finds the
/// size from which a message costs a round trip more, because the transport announces it first.
///
/// Collective: every rank calls it with the same `probe` and gets the same figures, those of rank `from`. On a
/// simulated network with equal links and without cards, the figures are exact. A group of one rank has no links: all
/// figures are 0. Cost: some (3 + 2 P) 1.3 (repetitions + 1) largest_bytes / bandwidth. Errors: those of
/// `measure_link`.
template <class Group>
measured_link measure_loaded_link(Group& group, link_probe probe = {}) {
    if (group.size() == 1) return {.link = {.latency = {}, .bandwidth = 0}};
    return detail::run_probe<detail::loaded_probe<typename Group::transport_type>>(group, probe, 1);
}

}}}  // namespace rill::RILL_ABI::cost
