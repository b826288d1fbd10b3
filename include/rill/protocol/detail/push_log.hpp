#pragma once

#include <rill/concept/replica.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The pushes of one worker, and what has become of them.
class push_log {
  public:
    /// How many there are: the number of the next one.
    std::uint64_t count() const { return count_; }

    /// A push of a gradient that was computed at `version`.
    void add(std::uint64_t version, std::optional<std::size_t> not_finite) {
        untold_.push_back({.number = count_++, .version = version, .not_finite = not_finite});
    }

    /// A server has taken some: the one with the number `first`, and those after it, each in its round.
    void took(std::uint64_t first, std::span<const std::int64_t> rounds) {
        for (std::size_t i = 0; i < rounds.size() && !untold_.empty(); ++i)
            if (untold_.front().number == first + i) tell(static_cast<std::uint64_t>(rounds[i]));
    }

    /// A fate that has not been told yet. `is_over`: nothing more will be taken.
    std::optional<push_fate> next(bool is_over) {
        if (fates_.empty() && is_over && !untold_.empty()) {
            fates_.push_back({.push = untold_.front().number, .what = push_fate::outcome::run_over});
            untold_.pop_front();
        }
        if (fates_.empty()) return std::nullopt;
        const push_fate told = fates_.front();
        fates_.pop_front();
        return told;
    }

  private:
    struct pushed {
        std::uint64_t number;
        std::uint64_t version;
        std::optional<std::size_t> not_finite;
    };

    void tell(std::uint64_t round) {
        const pushed& push = untold_.front();
        push_fate fate{
            .push = push.number, .round = round, .weight = 1, .age = static_cast<std::uint32_t>(round - push.version)};
        if (push.not_finite) {
            fate.what = push_fate::outcome::not_finite;
            fate.weight = 0;
            fate.coordinate = *push.not_finite;
        }
        fates_.push_back(fate);
        untold_.pop_front();
    }

    std::uint64_t count_ = 0;
    std::deque<pushed> untold_;
    std::deque<push_fate> fates_;
};

}}}  // namespace rill::RILL_ABI::detail
