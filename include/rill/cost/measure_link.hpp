#pragma once

#include <rill/collective/detail/frame_header.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/detail/fit_link.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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
    explicit ping_pong(const link_probe& probe) : probe_(probe), zeros_(probe.largest_bytes / sizeof(std::int32_t)) {}

    std::size_t largest() const { return zeros_.size(); }

    /// Runs the rank's part. This object must live until the operation ends, because its messages are read until then.
    network_link run(exchange<Net>& call) {
        call_ = &call;
        const rank_t self = call.net().rank();
        if (self == probe_.from) {
            write(measure());
            for (rank_t other = 0; other < call.net().size(); ++other)
                if (other != self) send(other, figures_);
        } else {
            if (self == probe_.to) answer();
            receive(probe_.from, figures_.size(), [&](std::span<const std::int32_t> values) {
                std::copy(values.begin(), values.end(), figures_.begin());
            });
        }
        return read();
    }

  private:
    using view = stream_view<std::int32_t>;

    /// Calls `visit(count)` for each size, in elements.
    template <class Visit>
    void for_each_size(Visit&& visit) const {
        visit(std::size_t{0});
        for (std::size_t count = 64; count < zeros_.size(); count *= 4) visit(count);
        visit(zeros_.size());
    }

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

    void send(rank_t peer, std::span<const std::int32_t> values) {
        call_->send(peer, view_frame(rill::detail::frame_header_of(*call_), view({0, values.size()}, values),
                                     headers_.take(wire::header_bytes).data()));
    }
    /// Receives a frame of `count` values and calls `use(values)` on them.
    template <class Use>
    void receive(rank_t peer, std::size_t count, Use&& use) {
        call_->expect(peer, {});
        const auto message = call_->receive(peer);
        const frame f = only_frame<std::int32_t, std::uint32_t>(*call_, peer, message.pieces(), {0, count});
        const view content = read_from(*call_, peer, [&] { return content_of(f, unused_); });
        if (!content.is_dense()) call_->scene().refuse(peer, "sent a sparse stream where a dense one was due");
        use(content.values());
    }
    static void ignore(std::span<const std::int32_t>) {}

    network_link measure() {
        std::vector<round_trip> trips;
        for_each_size([&](std::size_t count) {
            const std::span<const std::int32_t> values = std::span<const std::int32_t>(zeros_).first(count);
            std::vector<duration> times;
            for (int i = -1; i < probe_.repetitions; ++i) {  // the first one warms up
                const time_point start = call_->net().now();
                send(probe_.to, values);
                receive(probe_.to, count, ignore);
                if (i >= 0) times.push_back(call_->net().now() - start);
            }
            const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
            std::nth_element(times.begin(), middle, times.end());
            trips.push_back({wire::header_bytes + values.size_bytes(), *middle});
        });
        return fit_link(trips);
    }
    void answer() {
        for_each_size([&](std::size_t count) {
            const std::span<const std::int32_t> values = std::span<const std::int32_t>(zeros_).first(count);
            for (int i = -1; i < probe_.repetitions; ++i) {
                receive(probe_.from, count, ignore);
                send(probe_.from, values);
            }
        });
    }

    exchange<Net>* call_ = nullptr;
    link_probe probe_;
    std::vector<std::int32_t> zeros_;
    std::array<std::int32_t, 4> figures_{};
    frame_scratch<std::int32_t, std::uint32_t> unused_;
    arena headers_;
};

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
    if (probe.to == no_rank) probe.to = group.size() - 1;
    if (group.size() == 1) return {.latency = {}, .bandwidth = 0};
    const auto is_rank = [&](rank_t rank) { return 0 <= rank && rank < group.size(); };
    RILL_EXPECTS(is_rank(probe.from) && is_rank(probe.to) && probe.from != probe.to,
                 "cost::measure_link: a link is between two ranks of the group");
    RILL_EXPECTS(probe.repetitions >= 1 && probe.largest_bytes >= 1024,
                 "cost::measure_link: needs a repetition, and messages of 1024 bytes");
    detail::ping_pong<typename Group::transport_type> probing(probe);
    network_link found;
    constexpr option_names names{{"first rank", "last rank", "number of repetitions"}};
    group.run(
        {.kind = operation::broadcast,
         .element = element_type::int32,
         .dimension = probing.largest(),
         .options = names.with({static_cast<std::uint32_t>(probe.from), static_cast<std::uint32_t>(probe.to),
                                static_cast<std::uint32_t>(probe.repetitions)})},
        [&](auto& call) {
            found = probing.run(call);
            return receipt{};
        },
        names);
    return found;
}

}}}  // namespace rill::RILL_ABI::cost
