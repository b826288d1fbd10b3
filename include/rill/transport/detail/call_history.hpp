#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The last `calls_remembered` calls that one rank has announced in one context, in any order.
///
/// Memory: grows with the numbers of the calls, up to `calls_remembered` entries.
class call_history {
  public:
    [[gnu::noinline]] void announce(const call_signature& call) {
        const auto place = static_cast<std::size_t>(call.number % calls_remembered);
        if (place >= calls_.size()) calls_.resize(place + 1);
        calls_[place] = call;
        if (!newest_ || newest_->number < call.number) newest_ = call;
    }

    /// Call `number`, if it has been announced.
    std::optional<call_signature> entered(std::uint64_t number) const {
        const auto place = static_cast<std::size_t>(number % calls_remembered);
        if (place >= calls_.size() || !calls_[place] || calls_[place]->number != number) return std::nullopt;
        return calls_[place];
    }

    /// Forgets the state (`is_state`) that was announced under `number`, if any, and returns it.
    std::optional<call_signature> take_state(std::uint64_t number) {
        const auto announced = entered(number);
        if (!announced || !is_state(*announced)) return std::nullopt;
        calls_[static_cast<std::size_t>(number % calls_remembered)].reset();
        return announced;
    }

    /// The answer to an inquiry that times out: call `number`, or else the newest call if its number is higher.
    std::optional<call_signature> entered_or_later(std::uint64_t number) const {
        if (const auto exactly = entered(number)) return exactly;
        return newest_ && newest_->number > number ? newest_ : std::nullopt;
    }

  private:
    std::vector<std::optional<call_signature>> calls_;  // number n at n modulo calls_remembered
    std::optional<call_signature> newest_;
};

}}}  // namespace rill::RILL_ABI::detail
