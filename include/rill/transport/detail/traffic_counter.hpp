#pragma once

#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Counts messages and bytes sent and received; several activities may count at once.
class traffic_counter {
  public:
    void sent(std::size_t bytes) { add(messages_sent_, bytes_sent_, bytes); }
    void received(std::size_t bytes) { add(messages_received_, bytes_received_, bytes); }
    traffic now() const {
        constexpr auto relaxed = std::memory_order_relaxed;
        return {messages_sent_.load(relaxed), bytes_sent_.load(relaxed), messages_received_.load(relaxed),
                bytes_received_.load(relaxed)};
    }

  private:
    using counter = std::atomic<std::uint64_t>;

    static void add(counter& messages, counter& sum, std::size_t bytes) {
        messages.fetch_add(1, std::memory_order_relaxed);
        sum.fetch_add(bytes, std::memory_order_relaxed);
    }

    counter messages_sent_{0}, bytes_sent_{0}, messages_received_{0}, bytes_received_{0};
};

}}}  // namespace rill::RILL_ABI::detail
