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
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/detail/elastic_mail.hpp>
#include <rill/protocol/elastic_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How a rank of an elastic team finds the others. The ranks that the run was started with greet each other until all
/// have been heard, and tell each other which lives they have heard. These are the first view as soon as all name the
/// same ones: no other rank can then have other lives confirmed by all. Two ranks that a cut parts hear of each other
/// by those that reach both. Where a view is there already, its members answer a greeting with it: this rank is a
/// newcomer, until a view lists it.
template <class Net>
class elastic_meeting {
  public:
    elastic_meeting(elastic_mail<Net>& mail, const elastic_options& options, std::uint64_t build)
        : mail_(&mail),
          options_(options),
          build_(build),
          told_(static_cast<std::size_t>(mail.size())),
          named_(static_cast<std::size_t>(mail.size())),
          lacks_(static_cast<std::size_t>(mail.size())) {
        told_[static_cast<std::size_t>(mail.rank())] = mail.life_of(mail.rank());
        for (rank_t rank = 0; rank < mail.size(); ++rank)
            if (mail.life_of(rank) != 0) known_.next.members.push_back(rank);
        present_ = known_.next.members;
        std::erase(present_, mail.rank());
    }

    /// The view that this rank knows, and the step with which it begins.
    const agreement_decision& known() const { return known_; }
    bool is_newcomer() const { return is_newcomer_; }
    /// Whether this rank is a member of the view that it knows.
    bool is_over() const { return is_over_; }
    /// Lives that have ended before this rank was a member.
    const std::vector<agreement_seat>& ended() const { return ended_; }
    /// Lives that are silent.
    const std::vector<agreement_seat>& silent() const { return silent_; }

    /// Members of the view that this newcomer knows of whose present lives it has heard nothing.
    std::vector<rank_t> unheard() const {
        std::vector<rank_t> all;
        for (std::size_t i = 0; i < known_.next.incarnations.size(); ++i)
            if (const rank_t rank = known_.next.members[i];
                rank != mail_->rank() && mail_->life_of(rank) != known_.next.incarnations[i])
                all.push_back(rank);
        return all;
    }

    /// When this rank introduces itself next.
    time_point introduces_at() const { return introduces_at_; }
    /// Tells those that this rank knows that it is there, or that it has the state: once in `repeat`, as messages that
    /// come must not bring forth messages.
    void introduce_again(agreement_message::what kind) {
        if (mail_->now() < introduces_at_) return;
        const bool is_first = introduces_at_ == time_point{};
        introduces_at_ = mail_->now() + options_.repeat;
        introduce(kind, !is_first);
    }
    /// What this rank says from now on is new.
    void introduce_at_once() { introduces_at_ = {}; }

    /// The first view is there if all have said that they are, and name the same lives.
    void end_if_all_are_there() {
        if (!unheard_of().empty()) return;
        if (known_.next.incarnations.empty()) {
            for (const rank_t rank : known_.next.members)
                known_.next.incarnations.push_back(told_[static_cast<std::size_t>(rank)]);
            named_[static_cast<std::size_t>(mail_->rank())] = lives();
            // Others may also have missed what this rank has said before they began.
            introduce(agreement_message::what::hello, false);
        }
        is_over_ = undecided().empty();
        if (is_over_) tell_the_parted();
    }

    void take(rank_t from, const agreement_frame& frame) {
        if (frame.message.kind == agreement_message::what::hello) greeted(from, frame);
        const bool is_read = frame.message.view_is != agreement_message::form::unread;
        if (frame.message.kind == agreement_message::what::decide && is_read) learn(frame.message.value);
    }
    void take(rank_t from, const peer_event& changed) {
        std::erase(present_, from);
        std::erase_if(silent_, [&](const agreement_seat& seat) { return seat.rank == from; });
        if (changed.kind == peer_change::silent) silent_.push_back({from, changed.incarnation});
        if (changed.kind != peer_change::ended) return present_.push_back(from);
        ended_.push_back({from, changed.incarnation});
        if (present_.empty()) throw_ended("all others have ended");
    }

    [[noreturn, gnu::cold]] void throw_alone() const {
        const double within = options_.timeout.seconds();
        const auto fail_if_any = [&](const std::vector<rank_t>& absent, const char* of, const char* what) {
            if (is_newcomer_ || absent.empty()) return;
            throw timeout(notice(absent.front(),
                                 text_of({"elastic: ", text_of_ranks(absent), of, absent.size() == 1 ? " has" : " have",
                                          what, " within ", within, " s"})));
        };
        fail_if_any(unheard_of(), " of the first view", " not come");
        fail_if_any(undecided(), "", " not agreed on the first view");
        throw timeout(notice(no_rank, text_of({"elastic: rank ", mail_->rank(), " is not taken in within ", within,
                                               " s", unheard().empty() ? "" : ", and hears nothing of ",
                                               unheard().empty() ? "" : text_of_ranks(unheard())})));
    }

  private:
    /// The ranks of the first view of which this rank has not heard.
    std::vector<rank_t> unheard_of() const {
        std::vector<rank_t> all = known_.next.members;
        std::erase_if(all, [&](rank_t rank) { return told_[static_cast<std::size_t>(rank)] != 0; });
        return all;
    }
    /// Those that name other lives than this rank, or none yet. One that has ended will enter no view.
    std::vector<rank_t> undecided() const {
        const std::uint64_t own = lives();
        std::vector<rank_t> all = known_.next.members;
        std::erase_if(all, [&](rank_t rank) {
            const auto i = static_cast<std::size_t>(rank);
            return named_[i] == own || has_ended({rank, told_[i]});
        });
        return all;
    }
    /// A hash of the first view as this rank knows it.
    std::uint64_t lives() const { return known_.next.key("first view"); }

    /// `says_whom_it_lacks`: once others have had the time to greet this rank.
    void introduce(agreement_message::what kind, bool says_whom_it_lacks) {
        agreement_message made;
        made.kind = kind;
        made.build = build_;
        if (!is_newcomer_ && says_whom_it_lacks) made.others = unheard_of();
        std::vector<agreement_seat> heard_and_ended;
        if (!is_newcomer_ && !known_.next.incarnations.empty()) {
            made.lives = lives();
            for (const agreement_seat& seat : ended_)
                if (lists(known_.next, seat.rank, seat.incarnation)) heard_and_ended.push_back(seat);
        }
        for (const rank_t rank : known_.next.members) {
            if (rank == mail_->rank()) continue;
            made.joins = {{mail_->rank(), mail_->life_of(mail_->rank())}, {rank, mail_->life_of(rank)}};
            made.joins.insert(made.joins.end(), heard_and_ended.begin(), heard_and_ended.end());
            for (const rank_t lacked : lacks_[static_cast<std::size_t>(rank)])
                if (const std::uint64_t life = told_[static_cast<std::size_t>(lacked)]; life != 0)
                    made.joins.push_back({lacked, life});
            mail_->post(rank, made);
        }
    }
    /// The first view is agreed on; who has not been reached by all cannot know it.
    void tell_the_parted() {
        agreement_message made;
        made.kind = agreement_message::what::decide;
        made.value = known_;
        for (const rank_t rank : known_.next.members)
            if (!lacks_[static_cast<std::size_t>(rank)].empty()) mail_->post(rank, made);
    }
    void greeted(rank_t from, const agreement_frame& frame) {
        const agreement_message& m = frame.message;
        const bool is_for_this_life = m.joins.size() >= 2 && m.joins[1].incarnation == mail_->life_of(mail_->rank());
        if (!is_for_this_life || frame.life != mail_->life_of(from)) return;
        if (m.build != build_ && !is_newcomer_) throw_mismatch(from);
        if (is_newcomer_) return;
        hear({from, frame.life});
        if (!m.others.empty()) lacks_[static_cast<std::size_t>(from)] = m.others;
        if (m.lives != 0) named_[static_cast<std::size_t>(from)] = m.lives;
        for (std::size_t i = 2; i < m.joins.size(); ++i)  // of those that do not reach this rank, or not any more
            if (has_ended(m.joins[i]) || is_lacked(m.joins[i])) hear(m.joins[i]);
    }
    bool is_lacked(const agreement_seat& seat) const {
        return told_[static_cast<std::size_t>(seat.rank)] == 0 && mail_->life_of(seat.rank) == seat.incarnation;
    }
    void hear(const agreement_seat& seat) {
        std::uint64_t& told = told_[static_cast<std::size_t>(seat.rank)];
        if (std::exchange(told, seat.incarnation) != seat.incarnation) known_.next.incarnations.clear();
    }
    /// Whether this life has ended, and no other has begun.
    bool has_ended(const agreement_seat& seat) const {
        return mail_->life_of(seat.rank) == seat.incarnation &&
               std::find(ended_.begin(), ended_.end(), seat) != ended_.end();
    }
    void learn(const agreement_decision& of) {
        if (is_newcomer_ && of.next.epoch < known_.next.epoch) return;
        known_ = of;
        is_newcomer_ = true;
        is_over_ = lists(known_.next, mail_->rank(), mail_->life_of(mail_->rank()));
    }

    abort_notice notice(rank_t culprit, std::string reason) const {
        return mail_->notice(culprit, 0, std::move(reason));
    }
    [[noreturn, gnu::cold]] void throw_mismatch(rank_t odd) const {
        abort_notice told = notice(
            odd, text_of({"elastic: rank ", odd, " has another topology or other options than rank ", mail_->rank()}));
        told.kind = failure::mismatch;
        throw mismatch(told);
    }
    [[noreturn, gnu::cold]] void throw_ended(const std::string& why) const {
        abort_notice told = notice(no_rank, text_of({"elastic: rank ", mail_->rank(), " finds no view: ", why}));
        told.kind = failure::exception;
        throw peer_failure(told);
    }

    elastic_mail<Net>* mail_;
    elastic_options options_;
    std::uint64_t build_;
    agreement_decision known_{};
    std::vector<std::uint64_t> told_;   ///< the lives of those who have said that they are there
    std::vector<std::uint64_t> named_;  ///< of each rank, a hash of the lives that it has heard, once these are all
    std::vector<std::vector<rank_t>> lacks_;  ///< of each rank, of whom it had heard nothing when it greeted again
    std::vector<rank_t> present_{};           ///< the others that have not ended
    std::vector<agreement_seat> ended_{}, silent_{};
    bool is_newcomer_ = false;
    bool is_over_ = false;
    time_point introduces_at_{};
};

}}}  // namespace rill::RILL_ABI::detail
