#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/elastic_members.hpp>
#include <rill/protocol/detail/state_exchange.hpp>
#include <rill/protocol/elastic_options.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
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
        std::vector<rank_t> providers = members_->others();
        // The nearest first: by rank, the next one.
        std::rotate(providers.begin(), std::upper_bound(providers.begin(), providers.end(), members_->rank()),
                    providers.end());
        exchange_.begin_fetch(members_->view().epoch, providers, std::nullopt);
        const time_point end = now() + options_.timeout;
        members_->ask_at_once();
        while (!members_->has_entered()) {
            if (now() >= end) members_->throw_alone();
            if (exchange_.fetch(state, now() + options_.repeat))
                members_->ask_for_seat(end);
            else
                members_->pump(deadline::immediate);
        }
        fetch_base(state, agree);
    }
    /// A member gets what others have committed without it.
    template <class State, class Agree>
    void catch_up(State& state, const Agree& agree) {
        while (members_->committed() < members_->agreement().base()) {
            exchange_.begin_fetch(members_->view().epoch, members_->others(), members_->committed());
            fetch_base(state, agree);
        }
    }
    /// To those who ask for this rank's state.
    template <class State>
    void give(const State& state) {
        const std::uint64_t at = members_->committed();
        if (!serves_ || *serves_ != members_->view().epoch) {
            exchange_.serve(members_->view(), at);
            if (!serves_) given_ = at;
            serves_ = members_->view().epoch;
        }
        if (given_ < at) exchange_.committed(at, state.changes());
        given_ = at;
        if (exchange_.wants_snapshot(at)) exchange_.take_snapshot(at, state.pack());
    }

  private:
    time_point now() const { return members_->now(); }

    template <class State, class Agree>
    void fetch_base(State& state, const Agree& agree) {
        const time_point end = now() + options_.timeout;
        const auto base = [&] { return members_->agreement().base(); };
        while (!exchange_.fetch_step(state, base(), std::min(end, now() + options_.repeat))) {
            if (now() >= end) members_->throw_alone();
            members_->pump(deadline::immediate);
            agree();
        }
        members_->tell({.happened = agreement_event::what::caught_up, .step = std::max(*exchange_.have(), base())});
        given_ = members_->committed();
        exchange_.serve(members_->view(), given_);
        serves_ = members_->view().epoch;
    }

    elastic_members<Net>* members_;
    elastic_options options_;
    state_exchange<Net> exchange_;
    std::optional<std::uint32_t> serves_{};  ///< the epoch of the view that others are served in
    std::uint64_t given_ = 0;                ///< the step of the latest state that others can get
};

}}}  // namespace rill::RILL_ABI::detail
