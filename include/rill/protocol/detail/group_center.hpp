#pragma once

#include <rill/collective/broadcast.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A model that several groups of ranks share, as the service of one group's replica uses it.
template <Element T>
class shared_center {
  public:
    shared_center() = default;
    shared_center(const shared_center&) = delete;
    shared_center& operator=(const shared_center&) = delete;
    virtual ~shared_center() = default;

    /// Collective in the group, whose ranks all have `model`: the center takes what has changed in it, and `model`
    /// becomes the center's. `starter`: the rank that speaks for the group. False once the center's run is over.
    virtual bool meet(rank_t starter, std::span<T> model) = 0;
    /// This rank pushes no more to the center.
    virtual void leave() = 0;
};

/// A center that is a `Replica`, such as a parameter server.
///
/// It takes changes; but if its update counts ranks (`RankedUpdate`), it takes models, always from the first rank.
template <class Group, class Center, Element T>
class group_center final : public shared_center<T> {
  public:
    /// `model`: of the group. The first pull tells this rank a version that it may push at.
    group_center(Group& group, Center& center, std::span<const T> model)
        : group_(group), center_(center), before_(model.begin(), model.end()), change_(model.size()) {
        const auto held = pull_into(change_);
        is_over_ = !held;
        if (!held) return;
        held_ = *held;
        began_elsewhere_ = is_untouched() && !std::equal(model.begin(), model.end(), change_.begin());
    }
    /// The center's first model is not that of the group. Known only where nobody has pushed to it yet.
    bool began_elsewhere() const { return began_elsewhere_; }
    /// The center's run had ended before this rank joined it.
    bool is_over() const { return is_over_; }

    bool meet(rank_t starter, std::span<T> model) override {
        const rank_t speaker = takes_models ? 0 : starter;
        std::array<std::int32_t, 1> goes_on{1};
        if (group_.rank() == speaker) goes_on[0] = exchange(model) ? 1 : 0;
        broadcast(group_, goes_on, speaker);
        broadcast(group_, before_, speaker);
        std::copy(before_.begin(), before_.end(), model.begin());  // at last: a meeting that fails leaves it whole
        return goes_on[0] != 0;
    }
    void leave() override { center_.retire(); }

  private:
    static constexpr bool takes_models = requires {
        typename Center::update_type;
        requires RankedUpdate<typename Center::update_type, T>;
    };

    /// The center's ranks have other numbers than the group's: its failure is told as this rank's own.
    bool exchange(std::span<const T> model) {
        for (std::size_t i = 0; i < model.size(); ++i) change_[i] = takes_models ? model[i] : model[i] - before_[i];
        if (const auto bad = kernel::find_non_finite(std::span<const T>(change_))) refuse(*bad);
        before_.assign(model.begin(), model.end());
        try {
            center_.push(change_, held_);
            const auto held = pull_into(before_);
            while (center_.fate()) continue;
            if (held) held_ = *held;
            return held.has_value();
        } catch (const error& failed) {
            if (failed.notice().context == every_context) throw;
            throw_error({.context = group_.context(),
                         .kind = failed.notice().kind,
                         .culprit = group_.rank(),
                         .reason = text_of(
                             {"rank ", group_.rank(), " has no model between the groups: ", failed.notice().reason})});
        }
    }

    /// The center would drop what is not finite, and all that the group has changed beside it.
    [[noreturn, gnu::cold]] void refuse(std::size_t coordinate) const {
        throw_error(
            {.context = group_.context(),
             .kind = failure::invalid_value,
             .culprit = group_.rank(),
             .reason = text_of({"rank ", group_.rank(), ": what its group has changed is not finite at coordinate ",
                                coordinate, "; the model between the groups does not take it"})});
    }

    /// Where the center's run is ending, the other ranks of the group must be told before this one waits for the end.
    /// The version is that of one part of the model: a push to others may have come earlier.
    bool is_untouched() const {
        if constexpr (requires { center_.is_untouched(); })
            return center_.is_untouched();
        else
            return held_.version == 0;
    }
    std::optional<held_version> pull_into(std::span<T> model) {
        if constexpr (requires { center_.pull_if_going(model); })
            return center_.pull_if_going(model);
        else
            return center_.pull(model);
    }

    Group& group_;
    Center& center_;
    held_version held_{};
    bool began_elsewhere_ = false;
    bool is_over_ = false;
    aligned_vector<T> before_;  ///< what the center has given last
    aligned_vector<T> change_;
};

}}}  // namespace rill::RILL_ABI::detail
