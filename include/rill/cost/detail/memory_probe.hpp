#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/detail/probe_messages.hpp>
#include <rill/cost/measure_link.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// One rank's part in the measurement of what memory costs that ranks share, or caches that their cores share: all
/// ranks at once send a vector to the next rank, which reads it, and then write it anew.
template <class Net>
class memory_probe {
  public:
    explicit memory_probe(const link_probe& probe)
        : probe_(probe), messages_(probe.largest_bytes), own_(messages_.largest()) {}

    std::size_t largest() const { return own_.size(); }

    /// In nanoseconds per byte: what it costs more to read a message for the first time than again, and to write what
    /// another rank has read than what no other rank has. This object must live until the operation ends, because its
    /// messages are read until then.
    std::array<double, 2> run(exchange<Net>& call) {
        const rank_t self = call.net().rank(), ranks = call.net().size();
        const rank_t next = (self + 1) % ranks, previous = (self + ranks - 1) % ranks;
        std::vector<std::int64_t> reading, writing;
        const auto more = [&](auto&& work) {
            const time_point start = call.net().now();
            work();
            const time_point between = call.net().now();
            work();
            return ((between - start) - (call.net().now() - between)).ns;
        };
        for (int i = -1; i < probe_.repetitions; ++i) {
            const std::int64_t written = more([&] { std::iota(own_.begin(), own_.end(), i); });
            messages_.send(call, next, own_);
            std::int64_t read = 0;
            messages_.receive(call, previous, own_.size(), [&](std::span<const std::int32_t> values) {
                read = more([&] {
                    for (const std::int32_t value : values) sum_ += static_cast<std::uint32_t>(value);
                });
            });
            messages_.send(call, previous, messages_.zeros(0));  // it has been read
            messages_.receive(call, next, 0);
            if (i < 0) continue;
            writing.push_back(written);
            reading.push_back(read);
        }
        return {per_byte(reading), per_byte(writing)};
    }

  private:
    double per_byte(std::vector<std::int64_t>& times) const {
        const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        const auto bytes = static_cast<double>(own_.size() * sizeof(std::int32_t));
        return std::max(0.0, static_cast<double>(*middle) / bytes);
    }

    link_probe probe_;
    probe_messages<Net> messages_;
    std::vector<std::int32_t> own_;
    std::uint32_t sum_ = 0;  ///< it may wrap around
};

}}}  // namespace rill::RILL_ABI::cost::detail
