#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/detail/elastic_mail.hpp>
#include <rill/protocol/detail/elastic_meeting.hpp>
#include <rill/protocol/elastic_errors.hpp>
#include <rill/protocol/elastic_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Who is in an elastic team, as this rank knows it: first the meeting, then the agreement, fed by the transport.
template <class Net>
class elastic_members {
  public:
    using event = agreement_event;
    using message_is = agreement_message::what;

    elastic_members(Net& net, const elastic_options& options, std::uint64_t build)
        : options_(options),
          mail_(net, options.timeout),
          meeting_(mail_, options, build),
          finished_(static_cast<std::size_t>(net.size())) {}

    /// Returns when there is a view.
    void meet() {
        const time_point end = now() + options_.timeout;
        while (!has_entered() && !meeting_.is_newcomer()) {
            if (now() >= end) meeting_.throw_alone();
            meeting_.introduce_again(message_is::hello);
            pump(std::min(end, meeting_.introduces_at()));
            if (!has_entered() && !meeting_.is_newcomer()) meeting_.end_if_all_are_there();
            enter_if_listed();
        }
    }
    /// A newcomer that has the state asks for its seat, at intervals that begin with `ask_at_once`. As long as it does
    /// not hear a member, for instance one that was cut off from it when it began, it asks for the present view
    /// instead: with such a pair in it no collective would succeed.
    void ask_at_once() { meeting_.introduce_at_once(); }
    void ask_for_seat(time_point end) {
        meeting_.introduce_again(meeting_.unheard().empty() ? message_is::join : message_is::hello);
        pump(std::min(end, meeting_.introduces_at()));
    }

    /// Whether this rank has ever been a member. From then on there is an agreement.
    bool has_entered() const { return agreement_.has_value(); }
    bool is_member() const { return agreement_ && !agreement_->is_excluded(); }
    const agreement_machine& agreement() const { return *agreement_; }
    const rill::view& view() const { return agreement_ ? agreement_->view() : meeting_.known().next; }
    /// Without incarnations, which are for machines.
    rill::view plain_view() const { return {.epoch = view().epoch, .members = view().members}; }
    std::uint64_t committed() const { return agreement_ ? agreement_->committed() : 0; }

    rank_t rank() const { return mail_.rank(); }
    std::vector<rank_t> others() const {
        std::vector<rank_t> all = view().members;
        std::erase(all, rank());
        return all;
    }
    /// Whether the transport has told of the present life of each member, but those that are lost.
    bool has_heard_of_all() const {
        const std::vector<rank_t> all = others();
        return std::all_of(all.begin(), all.end(), [&](rank_t rank) {
            return agreement_->has_lost(rank) || mail_.life_of(rank) == life_in(view(), rank);
        });
    }
    time_point now() const { return mail_.now(); }
    bool has_aborted() { return mail_.has_aborted(); }

    /// Takes one message, and then all that are there. Returns whether there was one.
    bool pump(deadline until) { return mail_.pump(until, *this); }
    void tell(const event& what) {
        mail_.obey(agreement_->on(what, now()), *agreement_);
        note_departures();
    }
    /// The decisions since the last call after which members had left, in their order.
    std::vector<agreement_decision> departures() { return std::exchange(departures_, {}); }

    void take(rank_t from, const peer_event& changed) {
        if (!agreement_) return meeting_.take(from, changed);
        tell({.happened = event::what::changed,
              .peer = from,
              .change = changed.kind,
              .incarnation = changed.incarnation});
    }
    void take(rank_t from, const agreement_frame& frame) {
        if (!agreement_) {
            meeting_.take(from, frame);
            return enter_if_listed();
        }
        const agreement_message& m = frame.message;
        if (m.kind == message_is::finished) finished_[static_cast<std::size_t>(from)] = lists(view(), from, frame.life);
        if (agreement_->hears(from, frame.life, m))
            tell({.happened = event::what::arrived, .peer = from, .message = &m});
    }

    void tell_finished() {
        for (const rank_t rank : others()) mail_.post(rank, {.kind = message_is::finished});
    }
    bool all_others_have_finished() const {
        const std::vector<rank_t> all = others();
        return std::all_of(all.begin(), all.end(), [&](rank_t rank) {
            return finished_[static_cast<std::size_t>(rank)] || agreement_->has_lost(rank);
        });
    }

    void require_member() const {
        if (!is_member()) throw_excluded();
    }
    [[noreturn, gnu::cold]] void throw_excluded() const {
        if (!agreement_)
            throw excluded(notice(rank(), text_of({"elastic: rank ", rank(),
                                                   " is no member yet: settle takes it in, before an attempt"})));
        throw excluded(
            notice(rank(), text_of({"elastic: the others go on without rank ", rank(), ", in ", plain_view().text()})));
    }
    [[noreturn, gnu::cold]] void throw_no_quorum() const {
        const auto& missing = agreement_->missing();
        throw no_quorum(notice(missing.front(), text_of({"elastic: rank ", rank(), " finds no quorum of ",
                                                         plain_view().text(), ": ", text_of_missing(missing)})));
    }
    [[noreturn, gnu::cold]] void throw_too_few() const {
        std::vector<rank_t> missing;
        for (rank_t rank = 0; rank < mail_.size(); ++rank)
            if (!view().contains(rank)) missing.push_back(rank);
        std::string reason = text_of({"elastic: ", plain_view().text(), " has ", view().members.size(),
                                      " members, and at least ", options_.least, " are wanted"});
        if (!missing.empty()) reason += text_of({": ", text_of_missing(missing)});
        throw no_quorum(notice(missing.empty() ? no_rank : missing.front(), std::move(reason)));
    }
    [[noreturn, gnu::cold]] void throw_alone() const { meeting_.throw_alone(); }
    [[noreturn, gnu::cold]] void throw_no_state() const {
        throw timeout(notice(rank(), text_of({"elastic: rank ", rank(), " has not got the state of the others within ",
                                              options_.timeout.seconds(), " s"})));
    }

  private:
    /// From then on this rank is a member of the view that it knows.
    void enter_if_listed() {
        if (agreement_ || !meeting_.is_over()) return;
        agreement_.emplace(
            meeting_.known(), rank(), options_.quorum,
            agreement_limits{.repeat = options_.repeat, .patience = options_.patience, .longest = options_.timeout});
        const auto told = [&](const agreement_seat& of, peer_change change) {
            tell({.happened = event::what::changed, .peer = of.rank, .change = change, .incarnation = of.incarnation});
        };
        note_departures();
        for (const agreement_seat& seat : meeting_.ended()) told(seat, peer_change::ended);
        for (const agreement_seat& seat : meeting_.silent()) told(seat, peer_change::silent);
    }
    /// One event ends one view at most.
    void note_departures() {
        const agreement_decision& last = agreement_->last();
        if (noted_ == last.next.epoch) return;
        noted_ = last.next.epoch;
        if (!last.left.empty()) departures_.push_back(last);
    }
    static std::string text_of_missing(const std::vector<rank_t>& ranks) {
        return text_of_ranks(ranks) + (ranks.size() == 1 ? " is missing" : " are missing");
    }
    abort_notice notice(rank_t culprit, std::string reason) const {
        return mail_.notice(culprit, committed(), std::move(reason));
    }

    elastic_options options_;
    elastic_mail<Net> mail_;
    elastic_meeting<Net> meeting_;
    std::vector<bool> finished_;
    std::optional<agreement_machine> agreement_{};
    std::optional<std::uint32_t> noted_{};  ///< the epoch of the latest decision that `note_departures` has seen
    std::vector<agreement_decision> departures_{};
};

}}}  // namespace rill::RILL_ABI::detail
