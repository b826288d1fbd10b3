#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/detail/fit_link.hpp>
#include <rill/cost/detail/probe_messages.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Which link is measured, and how carefully.
struct link_probe {
    rank_t from = 0;
    rank_t to = no_rank;                               ///< `no_rank`: the last rank
    std::size_t largest_bytes = std::size_t{1} << 20;  ///< payload; sizes grow from 0 by factors of 4
    int repetitions = 7;                               ///< round trips per size; their median is used

    friend bool operator==(const link_probe&, const link_probe&) = default;
};

namespace detail {

/// One rank's part in a measurement: frames of int32 go there and back.
template <class Net>
class ping_pong {
  public:
    explicit ping_pong(const link_probe& probe) : probe_(probe), messages_(probe.largest_bytes) {}

    std::size_t largest() const { return messages_.largest(); }

    /// Runs the rank's part. This object must live until the operation ends, because its messages are read until then.
    network_link run(exchange<Net>& call) {
        const rank_t self = call.net().rank();
        if (self == probe_.from) {
            write(fit_link(trips(call)));
            for (rank_t other = 0; other < call.net().size(); ++other)
                if (other != self) messages_.send(call, other, figures_);
        } else {
            if (self == probe_.to) answer(call);
            messages_.receive(call, probe_.from, figures_.size(), [&](std::span<const std::int32_t> values) {
                std::copy(values.begin(), values.end(), figures_.begin());
            });
        }
        return read();
    }

    /// The times there and back that rank `from` measures, while rank `to` answers.
    std::vector<round_trip> trips(exchange<Net>& call) {
        std::vector<round_trip> trips;
        messages_.for_each_size([&](std::size_t count) {
            trips.push_back({messages_.bytes(count), messages_.median_time(call, probe_.repetitions, [&] {
                                 messages_.send(call, probe_.to, messages_.zeros(count));
                                 messages_.receive(call, probe_.to, count);
                             })});
        });
        return trips;
    }
    void answer(exchange<Net>& call) {
        messages_.for_each_size([&](std::size_t count) {
            for (int i = -1; i < probe_.repetitions; ++i) {
                messages_.receive(call, probe_.from, count);
                messages_.send(call, probe_.from, messages_.zeros(count));
            }
        });
    }

  private:
    void write(const network_link& found) {
        std::memcpy(figures_.data(), &found.latency.ns, 8);
        std::memcpy(figures_.data() + 2, &found.bandwidth, 8);
    }
    network_link read() const {
        network_link found;
        std::memcpy(&found.latency.ns, figures_.data(), 8);
        std::memcpy(&found.bandwidth, figures_.data() + 2, 8);
        return found;
    }

    link_probe probe_;
    probe_messages<Net> messages_;
    std::array<std::int32_t, 4> figures_{};
};

/// Runs a rank's part in a measurement, `Probing`, as one operation. `load` tells kinds of measurements apart.
template <class Probing, class Group>
auto run_probe(Group& group, link_probe probe, std::uint32_t load) {
    if (probe.to == no_rank) probe.to = group.size() - 1;
    const auto is_rank = [&](rank_t rank) { return 0 <= rank && rank < group.size(); };
    RILL_EXPECTS(is_rank(probe.from) && is_rank(probe.to) && probe.from != probe.to,
                 "cost::link_probe: a link is between two ranks of the group");
    RILL_EXPECTS(probe.repetitions >= 1 && probe.largest_bytes >= 1024,
                 "cost::link_probe: needs a repetition, and messages of 1024 bytes");
    Probing probing(probe);
    decltype(probing.run(std::declval<exchange<typename Group::transport_type>&>())) found;
    constexpr option_names names{{"first rank", "last rank", "number of repetitions", "load"}};
    group.run(
        {.kind = operation::broadcast,
         .element = element_type::int32,
         .dimension = probing.largest(),
         .options = names.with({static_cast<std::uint32_t>(probe.from), static_cast<std::uint32_t>(probe.to),
                                static_cast<std::uint32_t>(probe.repetitions), load})},
        [&](auto& call) {
            found = probing.run(call);
            return receipt{};
        },
        names);
    return found;
}

}  // namespace detail

/// Measures the link between two ranks: sends messages of growing sizes there and back, and fits latency and bandwidth
/// to the medians.
///
/// Collective: every rank calls it with the same `probe` and gets the same figures, those of rank `from`. Half a round
/// trip counts as one way. On a simulated network the result is the given link (the bandwidth as precisely as
/// nanoseconds allow). In process, where a receiver reads the sender's memory, only the latency has a meaning.
///
/// `largest_bytes` is at least 1024. A group of one rank has no links: both figures are 0. Cost: some 2.7 (repetitions
/// + 1) largest_bytes / bandwidth. Errors: those of `barrier`.
template <class Group>
network_link measure_link(Group& group, link_probe probe = {}) {
    if (group.size() == 1) return {.latency = {}, .bandwidth = 0};
    return detail::run_probe<detail::ping_pong<typename Group::transport_type>>(group, probe, 0);
}

}}}  // namespace rill::RILL_ABI::cost
