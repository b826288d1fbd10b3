#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The last `calls_remembered` calls that one rank has announced in one context, in any order.
///
/// Memory: grows with the numbers of the calls, up to `calls_remembered` entries.
class call_history {
  public:
    [[gnu::noinline]] void announce(const call_signature& call) {
        const std::size_t at = index_of(call.number);
        while (at >= calls_.size()) calls_.add({});
        calls_[at] = {call, true};
        if (!newest_ || newest_->number < call.number) newest_ = call;
    }

    /// Call `number`, if it has been announced.
    std::optional<call_signature> entered(std::uint64_t number) const {
        const std::size_t at = index_of(number);
        if (at >= calls_.size() || !calls_[at].is_taken || calls_[at].call.number != number) return std::nullopt;
        return calls_[at].call;
    }

    /// Forgets the state (`is_state`) that was announced under `number`, if any, and returns it.
    std::optional<call_signature> take_state(std::uint64_t number) {
        const auto announced = entered(number);
        if (!announced || !is_state(*announced)) return std::nullopt;
        calls_[index_of(number)].is_taken = false;
        return announced;
    }

    /// The answer to an inquiry that times out: call `number`, or else the newest call if its number is higher.
    std::optional<call_signature> entered_or_later(std::uint64_t number) const {
        if (const auto exactly = entered(number)) return exactly;
        return newest_ && newest_->number > number ? newest_ : std::nullopt;
    }

  private:
    struct place {
        call_signature call{};
        bool is_taken = false;
    };
    static std::size_t index_of(std::uint64_t number) { return static_cast<std::size_t>(number % calls_remembered); }

    plain_vector<place> calls_;  // number n at n modulo calls_remembered
    std::optional<call_signature> newest_;
};

}}}  // namespace rill::RILL_ABI::detail
