#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_history.hpp>
#include <rill/transport/detail/simulated_table.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The calls that the ranks have entered and the contexts that they have closed.
///
/// A closed context is remembered for a while, so that late messages are dropped instead of filling the mailbox, and
/// peers that are behind still learn that the rank had entered their call.
class call_book {
  public:
    static constexpr std::size_t closed_remembered_per_rank = 1024;

    void announce(rank_t rank, std::uint64_t context, const call_signature& call) {
        entries_[{rank, context}].calls.announce(call);
    }

    std::optional<call_signature> entered(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const entry* found = entries_.find({rank, context});
        return found == nullptr ? std::nullopt : found->calls.entered(number);
    }
    std::optional<call_signature> entered_or_later(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const entry* found = entries_.find({rank, context});
        return found == nullptr ? std::nullopt : found->calls.entered_or_later(number);
    }

    void close(rank_t rank, std::uint64_t context) {
        entry& closing = entries_[{rank, context}];
        if (closing.closed) return;
        closing.closed = true;
        any_closed_ = true;
        std::deque<std::uint64_t>& remembered = closed_[{rank, 0}];
        remembered.push_back(context);
        if (remembered.size() <= closed_remembered_per_rank) return;
        entries_.erase({rank, remembered.front()});
        remembered.pop_front();
    }

    bool is_closed(rank_t rank, std::uint64_t context) {
        if (!any_closed_) return false;
        const entry* found = entries_.find({rank, context});
        return found != nullptr && found->closed;
    }

    /// Removes all entries of a rank that is killed: peers no longer learn what it had entered.
    void forget(rank_t rank) {
        entries_.erase_if([&](const rank_key& key) { return key.rank == rank; });
        made_.erase_if([&](const rank_key& key) { return key.rank == rank; });
        closed_.erase_if([&](const rank_key& key) { return key.rank == rank; });
    }

    std::uint64_t next_context(rank_t rank, std::uint64_t key) {
        constexpr std::uint64_t family = 0x72696C6C;  // keeps hashed contexts of key 0 apart from other uses of mix64
        return mix64(family, key, ++made_[{rank, key}]);
    }

  private:
    struct entry {
        rill::detail::call_history calls{};
        bool closed = false;
    };
    struct rank_key {
        rank_t rank = no_rank;
        std::uint64_t of_rank = 0;

        std::size_t hash() const { return mix64(static_cast<unsigned>(rank), of_rank); }
        friend bool operator==(const rank_key&, const rank_key&) = default;
    };

    table<rank_key, entry> entries_;
    table<rank_key, std::uint64_t> made_;
    table<rank_key, std::deque<std::uint64_t>> closed_;
    bool any_closed_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
