#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// The messages of a measurement: frames of int32, in growing sizes. It must live until the operation ends, because
/// messages are read until then.
template <class Net>
class probe_messages {
  public:
    explicit probe_messages(std::size_t largest_bytes) : zeros_(largest_bytes / sizeof(std::int32_t)) {}

    /// In elements.
    std::size_t largest() const { return zeros_.size(); }
    std::span<const std::int32_t> zeros(std::size_t count) const {
        return std::span<const std::int32_t>(zeros_).first(count);
    }
    /// The bytes of a message.
    static std::size_t bytes(std::size_t count) { return wire::header_bytes + count * sizeof(std::int32_t); }

    /// Calls `visit(count)` for each size, in elements.
    template <class Visit>
    void for_each_size(Visit&& visit) const {
        visit(std::size_t{0});
        for (std::size_t count = 64; count < zeros_.size(); count *= 4) visit(count);
        visit(zeros_.size());
    }

    void send(exchange<Net>& call, rank_t peer, std::span<const std::int32_t> values) {
        call.send(peer, view_frame(rill::detail::frame_header_of(call), view({0, values.size()}, values),
                                   headers_.take(wire::header_bytes).data()));
    }
    /// Receives a frame of `count` values and calls `use(values)` on them.
    template <class Use>
    void receive(exchange<Net>& call, rank_t peer, std::size_t count, Use&& use) {
        call.expect(peer, {});
        const auto message = call.receive(peer);
        const frame f = only_frame<std::int32_t, std::uint32_t>(call, peer, message.pieces(), {0, count});
        const view content = read_from(call, peer, [&] { return content_of(f, unused_); });
        if (!content.is_dense()) call.scene().refuse(peer, {"sent a sparse stream where a dense one was due"});
        use(content.values());
    }
    void receive(exchange<Net>& call, rank_t peer, std::size_t count) {
        receive(call, peer, count, [](std::span<const std::int32_t>) {});
    }

    /// The median time of so many calls of `trip()`, after one that warms up.
    template <class Trip>
    static duration median_time(exchange<Net>& call, int repetitions, Trip&& trip) {
        std::vector<duration> times;
        for (int i = -1; i < repetitions; ++i) {
            const time_point start = call.net().now();
            trip();
            if (i >= 0) times.push_back(call.net().now() - start);
        }
        const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        return *middle;
    }

  private:
    using view = stream_view<std::int32_t>;

    std::vector<std::int32_t> zeros_;
    frame_scratch<std::int32_t, std::uint32_t> unused_;
    arena headers_;
};

}}}  // namespace rill::RILL_ABI::cost::detail
