#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/elastic_members.hpp>
#include <rill/protocol/detail/state_exchange.hpp>
#include <rill/protocol/elastic_options.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How the members of an elastic team hand their state on. `agree` is called while a member waits for others: it takes
/// part in an agreement, if one is under way.
template <class Net>
class elastic_states {
  public:
    elastic_states(Net& net, elastic_members<Net>& members, const elastic_options& options, std::uint64_t build)
        : members_(&members),
          options_(options),
          exchange_(net, {.build = build, .catch_up_bytes = options.catch_up_bytes}) {}

    /// A newcomer gets the state, and then its seat.
    template <class State, class Agree>
    void join(State& state, const Agree& agree) {
        exchange_.begin_fetch(members_->view().epoch, nearest_first(members_->others()), std::nullopt);
        const time_point end = now() + options_.timeout;
        members_->ask_at_once();
        bool has_state = false;
        while (!members_->has_entered()) {
            if (now() >= end) has_state ? members_->throw_alone() : members_->throw_no_state();
            has_state = exchange_.fetch(state, now() + options_.repeat);
            if (has_state)
                members_->ask_for_seat(end);
            else
                members_->pump(deadline::immediate);
        }
        fetch_base(state, agree);
    }
    /// A member gets what others have committed without it, and the state of the majority if its own is another one.
    /// It then offers the state that all members of the view are to have.
    template <class State, class Agree>
    void take_up(State& state, const Agree& agree) {
        while (members_->committed() < members_->agreement().base()) {
            exchange_.begin_fetch(known_epoch(), nearest_first(members_->others()), members_->committed());
            fetch_base(state, agree);
        }
        if (!sound_.empty()) mend(state, agree);
        give(state);
    }
    /// Of the state with which this view begins.
    std::uint64_t checksum() const { return checksum_; }

    /// The majority of this view holds another state than these members. If this rank is one of them, `take_up` gets
    /// that state. Returns false if it has got it once already, before this step.
    bool mends(const std::vector<rank_t>& odd) {
        if (!std::binary_search(odd.begin(), odd.end(), members_->rank())) return true;
        if (mended_at_ == members_->committed()) return false;
        sound_.clear();
        std::set_difference(members_->view().members.begin(), members_->view().members.end(), odd.begin(), odd.end(),
                            std::back_inserter(sound_));
        return true;
    }

  private:
    time_point now() const { return members_->now(); }
    /// Of the last view that this rank has taken up, in which others serve it: they may not have taken up this one yet.
    std::uint32_t known_epoch() const { return serves_.value_or(members_->view().epoch); }

    /// Of ascending ranks: the next one after this rank first, so that not all get the state of the same one.
    std::vector<rank_t> nearest_first(std::vector<rank_t> ranks) const {
        std::rotate(ranks.begin(), std::upper_bound(ranks.begin(), ranks.end(), members_->rank()), ranks.end());
        return ranks;
    }

    /// Where none of the majority is left, the states are compared as they are.
    template <class State, class Agree>
    void mend(State& state, const Agree& agree) {
        std::erase_if(sound_, [&](rank_t rank) { return !members_->view().contains(rank); });
        if (sound_.empty()) return;
        exchange_.begin_fetch(known_epoch(), nearest_first(sound_), std::nullopt);
        fetch_base(state, agree);
        mended_at_ = members_->committed();
        sound_.clear();
    }
    template <class State, class Agree>
    void fetch_base(State& state, const Agree& agree) {
        const time_point end = now() + options_.timeout;
        const auto base = [&] { return members_->agreement().base(); };
        while (!exchange_.fetch_step(state, base(), std::min(end, now() + options_.repeat))) {
            if (now() >= end) members_->throw_no_state();
            members_->pump(deadline::immediate);
            agree();
        }
        members_->tell({.happened = agreement_event::what::caught_up, .step = std::max(*exchange_.have(), base())});
        given_ = members_->committed();
        exchange_.serve_anew(members_->view(), given_);
    }
    /// To those who ask for this rank's state.
    template <class State>
    void give(const State& state) {
        const std::uint64_t at = members_->committed();
        const bool is_new_view = serves_ != members_->view().epoch;
        buffer copy;
        if (is_new_view) {
            copy = state.pack();  // if it throws, the view is taken up by the next call
            checksum_ = rill::checksum(copy);
            exchange_.serve(members_->view(), at);
        }
        serves_ = members_->view().epoch;
        if (given_ < at) exchange_.committed(at, state.changes());
        given_ = at;
        if (!is_new_view && !exchange_.wants_snapshot(at)) return;
        if (!is_new_view) copy = state.pack();
        exchange_.take_snapshot(at, std::move(copy));
    }

    elastic_members<Net>* members_;
    elastic_options options_;
    state_exchange<Net> exchange_;
    std::optional<std::uint32_t> serves_{};  ///< the epoch of the view that others are served in
    std::uint64_t given_ = 0;                ///< the step of the latest state that others can get
    std::uint64_t checksum_ = 0;
    std::vector<rank_t> sound_{};               ///< the majority, while this rank has another state
    std::optional<std::uint64_t> mended_at_{};  ///< the step of the state that this rank has got instead of its own
};

}}}  // namespace rill::RILL_ABI::detail
