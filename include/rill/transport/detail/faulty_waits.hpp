#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/fault_control.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/detail/fault_news.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/fault_scene.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How a faulty transport waits: until what it waits for comes, or its rank dies, or a notice reaches it.
template <class Outer, Transport Net>
class faulty_waits : public decorator<Outer, Net> {
    using forwarding = decorator<Outer, Net>;

  public:
    using forwarding::now;
    using forwarding::rank;

  protected:
    using forwarding::inner_;

    faulty_waits(Net& inner, fault_scene& scene, time_point start)
        : forwarding(inner), scene_(&scene), start_(start), news_(inner.size(), inner.rank()) {
        RILL_EXPECTS(scene.size() == inner.size(), "faulty: the scene is for another number of ranks");
    }

    /// Throws when this rank is dead, or dies now.
    void live() const {
        if (now() >= scene_->end_of(rank(), start_).at) scene_->kill(rank());
        if (!scene_->is_alive(rank())) throw rank_killed{rank()};
    }

    duration since() const { return now() - start_; }
    bool travels() const { return scene_->control_travels(); }
    auto judge() const {
        return [this](rank_t source, rank_t receiver, duration sent) {
            return travels() ? scene_->judge_letter(source, receiver, sent) : fault_judge::verdict{};
        };
    }
    bool has_arrived(fault_letter& letter, rank_t peer) const {
        return peer == rank() || !travels() || letter.has_arrived(since(), judge());
    }

    /// Throws when this rank is dead, or when a notice that has reached it ends the channel.
    void go_on(channel on) const {
        live();
        if (const auto notice = notice_for(on)) throw_error(*notice);
    }
    std::optional<abort_notice> notice_for(channel on) const {
        if (travels()) return scene_->notices().notice_for(rank(), on, since(), judge());
        if (!scene_->has_restarts()) return std::nullopt;  // otherwise it may wait on another channel of the inner one
        auto known = inner_->aborted(on.context);
        return known && known->ends(on.tag) ? known : std::nullopt;
    }

    template <class Wait>
    auto alive_through(channel on, deadline until, Wait&& wait) -> decltype(wait(until)) {
        go_on(on);
        return in_slices(on, until, wait);
    }
    /// What is there already can be had after a notice too, as can the end of a closed queue.
    template <class Wait>
    auto waited(const char*, deadline until, Wait&& wait) {
        live();
        return in_slices({every_context}, until, wait);
    }
    /// Waits in slices of 2 ms where something may come during the wait of which the inner transport knows nothing:
    /// this rank's end, by time or by another activity, control that travels, or news of peers.
    template <class Wait>
    auto in_slices(channel on, deadline until, Wait&& wait) -> decltype(wait(until)) {
        const bool may_end = scene_->is_mortal(rank()) || travels() || scene_->has_restarts() || news_.is_monitored();
        if (until.is_immediate() || !may_end) return wait(until);
        while (true) {
            const deadline turn = std::min({until, scene_->end_of(rank(), start_), deadline(now() + milliseconds(2))});
            auto seen = wait(turn);
            live();
            if (seen || turn == until || now() < turn.at) return seen;  // a closed queue ends a wait early
            go_on(on);
        }
    }

    /// Waits until the deadline or until the context ends, by a receive on a channel that nobody uses.
    void wait_in_vain(channel on, deadline until) const {
        constexpr std::uint32_t of_nobody = 0xFFFF'FFFE;
        inner_->receive(rank(), {.context = on.context, .tag = of_nobody}, until);
    }

    void idle_until(deadline until) const {
        if (!until.is_immediate()) inner_->sleep_until(until.at);
    }

    fault_scene* scene_;
    time_point start_;
    mutable fault_news news_;
};

}}}  // namespace rill::RILL_ABI::detail
