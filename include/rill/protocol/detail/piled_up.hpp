#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/protocol/detail/push_queue.hpp>
#include <rill/session/contribution_sum.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The gradients of one rank that no round has taken yet, oldest first.
template <Element T, Backlog Sum, Staleness Age>
class piled_up {
  public:
    piled_up(const Sum& sum, const Age& age) : sum_(sum), age_(age) {}

    void add(pushed_gradient<T>&& next) { waiting_.push_back(std::move(next)); }
    bool empty() const { return waiting_.empty(); }

    /// Makes this rank's contribution to a round of all gradients that are not too old, in `into`. Tells the fate of
    /// every gradient to `tell`, for the case that the round succeeds, and gives the memory of each to `release`.
    template <class Tell, class Release>
    contribution take(std::uint64_t round, aligned_vector<T>& into, Tell&& tell, Release&& release) {
        const auto age_of = [&](const auto& each) { return static_cast<std::uint32_t>(round - each.version); };
        const auto counts = [&](const auto& each) { return !each.not_finite && age_.accepts(age_of(each)); };
        const auto count = static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), counts));
        contribution own{.weight = count == 0 ? 0.0 : sum_.weight(count), .age = 0};
        std::size_t taken = 0;
        for (auto& each : waiting_) {
            push_fate fate{.push = each.number, .round = round, .age = age_of(each)};
            if (counts(each)) {
                const double share = sum_.share(taken, count);
                add(each, share, taken == 0, into);
                own.age = std::max(own.age, fate.age);
                fate.weight = share;
                ++taken;
            } else if (each.not_finite) {
                fate.what = push_fate::outcome::not_finite;
                fate.coordinate = *each.not_finite;
            } else {
                fate.what = push_fate::outcome::too_old;
            }
            tell(fate);
            release(std::move(each.values));
        }
        waiting_.clear();
        return own;
    }

    /// Tells that no round will take what still waits.
    template <class Tell>
    void drop(Tell&& tell) {
        for (const auto& each : waiting_) tell({.push = each.number, .what = push_fate::outcome::run_over});
        waiting_.clear();
    }

  private:
    static void add(pushed_gradient<T>& from, double share, bool is_first, aligned_vector<T>& into) {
        if (is_first && share == 1) return into.swap(from.values);
        if (is_first) std::fill(into.begin(), into.end(), T{});
        kernel::add_scaled<T>(into, from.values, static_cast<T>(share), into);
    }

    Sum sum_;
    Age age_;
    std::vector<pushed_gradient<T>> waiting_;
};

}}}  // namespace rill::RILL_ABI::detail
