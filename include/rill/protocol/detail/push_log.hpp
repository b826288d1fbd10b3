#pragma once

#include <rill/concept/replica.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/fifo.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The pushes of one worker, and what has become of them.
class push_log {
  public:
    explicit push_log(std::size_t servers) : taken_(servers) {}

    /// How many there are: the number of the next one.
    std::uint64_t count() const { return count_; }

    /// A push of a gradient that was computed at `version`.
    void add(std::uint64_t version, std::optional<std::size_t> not_finite) {
        untold_.push_back({.number = count_++, .version = version, .not_finite = not_finite, .round = 0});
    }

    /// A server has taken some: the one with the number `first`, and those after it, each in its round. Rounds are told
    /// as the first server counts them, once all servers have taken the push.
    void took(std::size_t server, std::uint64_t first, std::span<const std::int64_t> rounds) {
        taken_[server] = std::max(taken_[server], first + rounds.size());
        const std::uint64_t by_all = *std::min_element(taken_.begin(), taken_.end());
        for (pushed& push : untold_)
            if (server == 0 && first <= push.number && push.number < first + rounds.size())
                push.round = static_cast<std::uint64_t>(rounds[static_cast<std::size_t>(push.number - first)]);
        while (!untold_.empty() && untold_.front().number < by_all) tell();
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
        std::uint64_t round;
    };

    void tell() {
        const pushed& push = untold_.front();
        push_fate fate{.push = push.number,
                       .round = push.round,
                       .weight = 1,
                       .age = static_cast<std::uint32_t>(push.round - push.version)};
        if (push.not_finite) {
            fate.what = push_fate::outcome::not_finite;
            fate.weight = 0;
            fate.coordinate = *push.not_finite;
        }
        fates_.push_back(fate);
        untold_.pop_front();
    }

    std::uint64_t count_ = 0;
    std::vector<std::uint64_t> taken_;  ///< how many each server has taken
    fifo<pushed> untold_;
    fifo<push_fate> fates_;
};

}}}  // namespace rill::RILL_ABI::detail
