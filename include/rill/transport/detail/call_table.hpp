#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/call_history.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The calls that one rank has entered and the contexts that it has closed. The rank's mutex guards it.
///
/// A closed context is remembered for a while, so that late messages are dropped instead of filling the mailbox, and
/// peers that are behind still learn that this rank had entered their call.
class call_table {
  public:
    static constexpr std::size_t closed_remembered = 1024;

    void announce(std::uint64_t context, const call_signature& call) { made_for(context).calls.announce(call); }

    std::optional<call_signature> entered(std::uint64_t context, std::uint64_t number) const {
        const state* const found = find(context);
        return found == nullptr ? std::nullopt : found->calls.entered(number);
    }
    std::optional<call_signature> entered_or_later(std::uint64_t context, std::uint64_t number) const {
        const state* const found = find(context);
        return found == nullptr ? std::nullopt : found->calls.entered_or_later(number);
    }

    [[gnu::noinline]] void close(std::uint64_t context) {
        state& closing = made_for(context);
        if (closing.closed) return;
        closing.closed = true;
        if (closed_.size() < closed_remembered) {
            closed_.add(context);
            return;
        }
        forget(closed_[next_]);
        closed_[next_] = context;
        next_ = (next_ + 1) % closed_remembered;
    }

    bool is_closed(std::uint64_t context) const {
        if (closed_.empty()) return false;
        const state* const found = find(context);
        return found != nullptr && found->closed;
    }

    [[gnu::noinline]] std::uint64_t next_context(std::uint64_t key) {
        constexpr std::uint64_t family = 0x72696C6C;  // keeps hashed contexts of key 0 apart from other uses of mix64
        return mix64(family, key, ++made_of(key));
    }

  private:
    struct state {
        std::uint64_t context = 0;
        rill::detail::call_history calls{};
        bool closed = false;
    };
    struct counter {
        std::uint64_t key;
        std::uint64_t count = 0;
    };

    std::uint64_t& made_of(std::uint64_t key) {
        for (counter& each : made_)
            if (each.key == key) return each.count;
        return made_.add({.key = key}).count;
    }

    plain_vector<state>& like(std::uint64_t context) { return contexts_[static_cast<std::size_t>(context % buckets)]; }
    const state* find(std::uint64_t context) const {
        for (const state& each : contexts_[static_cast<std::size_t>(context % buckets)])
            if (each.context == context) return &each;
        return nullptr;
    }
    [[gnu::noinline]] state& made_for(std::uint64_t context) {
        for (state& each : like(context))
            if (each.context == context) return each;
        return like(context).add({context});
    }
    void forget(std::uint64_t context) {
        plain_vector<state>& among = like(context);
        for (state& each : among)
            if (each.context == context) {
                each = std::move(among.back());
                return among.pop_back();
            }
    }

    static constexpr std::size_t buckets = 16;
    std::array<plain_vector<state>, buckets> contexts_{};  ///< by their remainders
    /// How many contexts each key has given: one entry for each view and session name, since a key that is forgotten
    /// and comes again would give a context twice, and another one than on ranks that remember it.
    plain_vector<counter> made_;
    plain_vector<std::uint64_t> closed_;  ///< a ring
    std::size_t next_ = 0;                ///< the oldest of a full ring
};

}}}  // namespace rill::RILL_ABI::detail
