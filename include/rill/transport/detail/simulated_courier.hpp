#pragma once

#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_history.hpp>
#include <rill/transport/detail/simulated_agenda.hpp>
#include <rill/transport/detail/simulated_mail.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_table.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A control message, from its first dispatch until it has arrived or is given up.
struct letter : appointment {
    enum class about : std::uint8_t { notice, question, answer, arrival, end, sign };

    letter() : appointment(what::letter) {}

    about kind{};
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    int life = 0;  ///< of its source
    time_point written{};
    const abort_notice* notice = nullptr;
    std::uint64_t context = 0;
    call_signature call{};   ///< of a question: only its number
    int repeated = 0;        ///< how often
    int followed = 0;        ///< how often it has waited for others to arrive first
    bool is_on_way = false;  ///< its appointment is its arrival, otherwise its next dispatch
};

/// The control channel: notices, announced calls and inquiries. It is ideal or travels by letters.
class courier : public mail {
  public:
    courier(int ranks, const network& chosen)
        : mail(ranks, chosen),
          travels_(chosen.control == control_plane::travelling),
          jitter_(chosen.jitter),
          silence_(chosen.silence) {}

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        throw_if_killed();
        at(self).calls.announce(context, call);
        answer_questions(self, context);
        wake_inquirers(self, [&](const strand& s) {
            return (!travels_ || s.rank == self) && s.waiting->on.context == context &&
                   s.waiting->amount == call.number;
        });
    }

    std::optional<call_signature> inquire(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number,
                                          deadline until) {
        const channel on{context, tag_of(number)};
        throw_if_ended(on);
        const auto before = passed(until) ? std::nullopt : take_state(self, peer, context, number);
        if (const auto known = answer_at_once(self, peer, context, number)) return known;
        ask(self, peer, context, number);
        wait_record what{.kind = waits_for::announcement, .peers = {&peer, 1}, .on = on, .amount = number};
        if (passed(until))
            poll();
        else
            wait(at(peer).inquiring, what, until);
        const auto said = answer_in_the_end(self, peer, context, number);
        return said ? said : before;
    }

    /// The body of this rank has returned or thrown.
    void depart(rank_t self) {
        at(self).has_departed = true;
        std::vector<std::uint64_t> contexts;
        for (const question& each : at(self).asked) contexts.push_back(each.context);
        for (const std::uint64_t context : contexts) answer_questions(self, context);
        wake_inquirers(self, [&](const strand& s) { return !travels_ || s.rank == self; });
    }

    /// Aborts a context and returns the notice that holds on this rank: the first one of a context that has reached it,
    /// where a notice of all contexts counts for each. A killed rank's notice is ignored.
    abort_notice abort(rank_t self, const abort_notice& notice) {
        if (scheduler_.is_killed()) return notice;
        if (const abort_notice* first = find_notice(self, {notice.context, notice.first_tag})) return *first;
        const issued_notice& own = issued_.emplace_back(issued_notice{notice, self, at(self).lives});
        learn(self, own.notice);
        for (rank_t peer = 0; travels_ && peer < size(); ++peer)
            if (peer != self) tell(self, peer, own.notice);
        return notice;
    }

    /// The exception being handled has left the body of `rank`: aborts all contexts of the ranks that do not monitor.
    void fail(rank_t rank) {
        const abort_notice& own = at(rank).failure.emplace(notice_of_current(rank));
        remember_thrown(rank, abort(rank, own).culprit);
        depart(rank);
    }

    /// A letter arrives, or is sent again.
    void deliver_letter(appointment& due) {
        letter& l = static_cast<letter&>(due);
        if (!l.is_on_way) return dispatch(l);
        if (!at(l.receiver).is_alive) return repeat_later(l);
        if (must_wait(l)) return follow(l);
        scheduler_.record(6U, static_cast<unsigned>(l.source), static_cast<unsigned>(l.receiver));
        const letter read = l;
        lay_down(l);
        if (is_fenced(read.receiver, read.source, read.life)) return;
        learn_life(read.receiver, read.source, read.life, read.kind == letter::about::end);
        switch (read.kind) {
            case letter::about::arrival:
            case letter::about::end:
            case letter::about::sign: return;
            case letter::about::notice: return hear(read.receiver, *read.notice);
            case letter::about::question:
                at(read.receiver).asked.push_back({read.source, read.context, read.call.number});
                return answer_questions(read.receiver, read.context);
            case letter::about::answer: return hear(read.receiver, read.source, read.context, read.call);
        }
    }

    void monitor(rank_t self, channel on) {
        set_monitors(self, true);  // first: an abort of every context that it has heard of does not end it any more
        throw_if_ended(on);
        rank_state& own = at(self);
        own.monitored.push_back(on);
        if (own.known.empty()) {
            for (rank_t peer = 0; peer < size(); ++peer) own.known.push_back({.life = at(peer).lives});
            for (rank_t peer = 0; peer < size(); ++peer)
                if (peer != self && at(peer).lives > 0 && (at(peer).has_ended || !at(peer).is_alive))
                    write_of_life(letter::about::end, peer, self);
            expect_signs(self);
            return;
        }
        for (rank_t peer = 0; peer < size(); ++peer) {
            const known_peer& last = own.known[static_cast<std::size_t>(peer)];
            if (last.has_ended && !is_fenced(self, peer, last.life))
                tell_change(self, peer, on, peer_change::ended, last.life);
        }
    }

  protected:
    /// Sends those who monitor the arrival or the end of a rank; first the notices that it knows, which may be why it
    /// has ended.
    void tell_of_life(letter::about change, rank_t rank) {
        at(rank).has_ended = change == letter::about::end;
        for (rank_t peer = 0; peer < size(); ++peer) {
            if (peer == rank || at(peer).known.empty()) continue;
            if (change == letter::about::end) forward_notices(rank, peer);
            write_of_life(change, rank, peer);
        }
    }

    /// What a rank has asked, said and heard ends with its life.
    void forget_control(rank_t rank) {
        at(rank).calls = {};
        at(rank).monitored.clear();
        set_monitors(rank, false);
        at(rank).known.clear();
        at(rank).fenced.clear();
        if (!travels_) return;
        at(rank).asked.clear();
        forget_notices(rank);
        heard_.erase_if([&](const hearsay_key& key) { return key.reader == rank; });
    }

    /// A rank has begun anew: the others ask it again what they wait to hear, and repeat their notices.
    void catch_up(rank_t rank) {
        if (!travels_) return;
        std::vector<std::pair<hearsay_key, std::vector<std::uint64_t>>> open;
        heard_.for_each([&](const hearsay_key& key, const hearsay& of) {
            if (key.of == rank) open.emplace_back(key, of.asked);
        });
        heard_.erase_if([&](const hearsay_key& key) { return key.of == rank; });
        for (const auto& [key, numbers] : open)
            for (const std::uint64_t number : numbers) ask(key.reader, rank, key.context, number);
        for (const issued_notice& each : issued_)
            if (each.by != rank && at(each.by).is_alive && at(each.by).lives == each.life)
                tell(each.by, rank, each.notice);
    }

    void forget_heard(rank_t self, std::uint64_t context) {
        for (rank_t peer = 0; travels_ && peer < size(); ++peer) heard_.erase({self, peer, context});
    }

  private:
    static constexpr duration least_pause = milliseconds(1), most_pause = seconds(1);
    static constexpr int most_repeats = 70;

    struct issued_notice {
        abort_notice notice;
        rank_t by;
        int life;
    };
    struct hearsay_key {
        rank_t reader = no_rank;
        rank_t of = no_rank;
        std::uint64_t context = 0;

        std::size_t hash() const { return mix64(static_cast<unsigned>(reader), static_cast<unsigned>(of), context); }
        friend bool operator==(const hearsay_key&, const hearsay_key&) = default;
    };
    struct letter_way {
        rank_t source = no_rank;
        int life = 0;  ///< of the source
        rank_t receiver = no_rank;

        std::size_t hash() const {
            return mix64(static_cast<unsigned>(source), static_cast<unsigned>(life), static_cast<unsigned>(receiver));
        }
        friend bool operator==(const letter_way&, const letter_way&) = default;
    };
    static letter_way way_of(const letter& l) { return {l.source, l.life, l.receiver}; }

    /// What a rank has heard from another about a context.
    struct hearsay {
        rill::detail::call_history calls{};
        bool has_departed = false;
        std::vector<std::uint64_t> asked{};  ///< the numbers of open questions
    };

    static call_signature departure_of(std::uint64_t number) {
        return {.number = number, .kind = operation::departure};
    }

    // --- inquiries

    /// The state that was heard of, and is asked for anew.
    std::optional<call_signature> take_state(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number) {
        hearsay* const known = heard_.find({self, peer, context});
        return known == nullptr ? std::nullopt : known->calls.take_state(number);
    }
    /// What needs no wait.
    std::optional<call_signature> answer_at_once(rank_t self, rank_t peer, std::uint64_t context,
                                                 std::uint64_t number) {
        if (!travels_ || self == peer) {
            if (const auto entered = at(peer).calls.entered(context, number)) return entered;
            return at(peer).has_departed ? answer_in_the_end(self, peer, context, number) : std::nullopt;
        }
        const hearsay* const known = heard_.find({self, peer, context});
        if (known == nullptr) return std::nullopt;
        if (const auto entered = known->calls.entered(number)) return entered;
        return known->has_departed ? answer_in_the_end(self, peer, context, number) : std::nullopt;
    }
    /// What is known when the wait is over.
    std::optional<call_signature> answer_in_the_end(rank_t self, rank_t peer, std::uint64_t context,
                                                    std::uint64_t number) {
        const bool is_direct = !travels_ || self == peer;
        const hearsay* const known = is_direct ? nullptr : heard_.find({self, peer, context});
        if (!is_direct && known == nullptr) return std::nullopt;
        const auto entered =
            is_direct ? at(peer).calls.entered_or_later(context, number) : known->calls.entered_or_later(number);
        const bool has_departed = is_direct ? at(peer).has_departed : known->has_departed;
        return entered || !has_departed ? entered : departure_of(number);
    }

    void ask(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number) {
        if (!travels_ || self == peer) return;
        std::vector<std::uint64_t>& asked = heard_[{self, peer, context}].asked;
        if (std::find(asked.begin(), asked.end(), number) != asked.end()) return;
        asked.push_back(number);
        letter& l = write(letter::about::question, self, peer);
        l.context = context;
        l.call.number = number;
        dispatch(l);
    }

    /// Tells those who have asked what this rank has entered by now: the call in question, or a later one meanwhile, or
    /// that neither will ever be; or the notice that has ended the call here. A failure of this rank itself does not
    /// end those that monitor: they get an answer.
    void answer_questions(rank_t self, std::uint64_t context) {
        std::erase_if(at(self).asked, [&](const question& asked) {
            if (asked.context != context) return false;
            const abort_notice* const known = find_notice(self, {context, tag_of(asked.number)});
            if (known != nullptr && !at(self).failure) {
                tell(self, asked.by, *known);
                return true;
            }
            auto entered = at(self).calls.entered_or_later(context, asked.number);
            if (!entered && at(self).has_departed) {
                forward_notices(self, asked.by);
                entered = departure_of(asked.number);
            }
            if (!entered) return false;
            letter& l = write(letter::about::answer, self, asked.by);
            l.context = context;
            l.call = *entered;
            dispatch(l);
            return entered->number == asked.number;
        });
    }

    void hear(rank_t self, rank_t peer, std::uint64_t context, const call_signature& said) {
        if (at(self).calls.is_closed(context)) return;
        hearsay& known = heard_[{self, peer, context}];
        std::erase(known.asked, said.number);
        if (said.kind == operation::departure)
            known.has_departed = true;
        else
            known.calls.announce(said);
        wake_inquirers(peer, [&](const strand& s) {
            return s.rank == self && s.waiting->on.context == context &&
                   (known.has_departed || s.waiting->amount == said.number);
        });
    }

    template <class Concerned>
    void wake_inquirers(rank_t peer, Concerned&& concerned) {
        at(peer).inquiring.for_each([&](strand& s) {
            if (concerned(s)) scheduler_.call(s);
        });
    }

    // --- letters

    void hear(rank_t self, const abort_notice& notice) {
        if (is_ignored(self, notice)) return;
        if (find_notice(self, {notice.context, notice.first_tag}) == nullptr) learn(self, notice);
    }

    void tell(rank_t self, rank_t peer, const abort_notice& notice) {
        letter& l = write(letter::about::notice, self, peer);
        l.notice = &notice;
        dispatch(l);
    }

    letter& write(letter::about kind, rank_t source, rank_t receiver) {
        if (unused_.empty()) unused_.push_back(&letters_.emplace_back());
        letter& l = *unused_.back();
        unused_.pop_back();
        l.kind = kind;
        l.source = source;
        l.receiver = receiver;
        l.life = at(source).lives;
        l.written = now();
        l.repeated = l.followed = 0;
        if (kind == letter::about::notice) ++open_notices_[way_of(l)];
        return l;
    }

    void write_of_life(letter::about change, rank_t of, rank_t reader) { dispatch(write(change, of, reader)); }

    /// Whenever a link to this rank is cut, the other end gives a sign of life, so that its silence is noticed.
    void expect_signs(rank_t self) {
        if (!travels_) return;
        for (const fault& each : links_.faults().plan().faults) {
            if (each.kind != fault::what::cut) continue;
            for (rank_t peer = 0; peer < size(); ++peer) {
                if (peer == self || !each.is_of_link(peer, self)) continue;
                letter& l = write(letter::about::sign, peer, self);
                l.is_on_way = false;
                scheduler_.future().add(l, std::max(now(), time_point{} + each.begins));
            }
        }
    }

    /// Others than a rank itself tell its end: its host, or those who hear its connections break.
    void dispatch(letter& l) {
        if (l.kind == letter::about::sign && l.repeated == 0) l.life = at(l.source).lives, l.written = now();
        if (l.kind != letter::about::end && (!at(l.source).is_alive || at(l.source).lives != l.life)) return give_up(l);
        const auto arrival = travels_ ? links_.depart_letter(now(), l.source, l.receiver) : std::optional(now());
        if (!arrival) return repeat_later(l);
        l.is_on_way = true;
        scheduler_.future().add(l, *arrival);
    }

    /// Tells `peer` the notices that `self` knows: whoever hears that a rank has gone also hears why.
    void forward_notices(rank_t self, rank_t peer) {
        if (!travels_) return;
        for (const abort_notice* const each : notices_of(self)) tell(self, peer, *each);
    }
    /// Whether a letter that says that a rank has gone would overtake what else it has sent to that receiver.
    bool must_wait(const letter& l) {
        const bool is_end = l.kind == letter::about::end;
        if (is_end && is_under_way(l.source, l.life, l.receiver)) return true;
        if (!is_end && !(l.kind == letter::about::answer && l.call.kind == operation::departure)) return false;
        return open_notices_.find(way_of(l)) != nullptr;
    }

    /// Until then it waits.
    void follow(letter& l) {
        const duration pause = microseconds(std::int64_t{1} << std::min(l.followed++, 20));
        scheduler_.future().add(l, now() + pause);
    }

    void repeat_later(letter& l) {
        if (l.repeated == most_repeats || is_gone_for_good(l.receiver)) return give_up(l);
        if (now() - l.written >= silence_) notice_silence(l);
        const duration first = std::max(least_pause, (links_.latency(l.source, l.receiver) + jitter_) * 4);
        const duration pause = first * (std::int64_t{1} << std::min(l.repeated++, 10));
        l.is_on_way = false;
        scheduler_.future().add(l, now() + std::min(pause, std::max(first, most_pause)));
    }

    /// What `l.source` sends has not arrived for long.
    void notice_silence(const letter& l) {
        const rank_state& receiver = at(l.receiver);
        if (!receiver.is_alive || receiver.known.empty() || is_fenced(l.receiver, l.source, l.life)) return;
        const known_peer& last = receiver.known[static_cast<std::size_t>(l.source)];
        if (last.life == l.life && !last.has_ended && !last.is_silent) tell_silence(l.receiver, l.source, true);
    }

    void give_up(letter& l) {
        if (l.kind == letter::about::question)
            if (hearsay* const known = heard_.find({l.source, l.receiver, l.context}))
                std::erase(known->asked, l.call.number);
        lay_down(l);
    }

    void lay_down(letter& l) {
        if (l.kind == letter::about::notice && --open_notices_[way_of(l)] == 0) open_notices_.erase(way_of(l));
        unused_.push_back(&l);
    }

    bool is_gone_for_good(rank_t rank) {
        const rank_state& of = at(rank);
        return !of.is_alive && !of.begins_anew && (of.next_fault == nullptr || !of.next_fault->pending());
    }

    bool travels_;
    duration jitter_;
    duration silence_;
    std::deque<issued_notice> issued_;  ///< known to ranks by their addresses
    std::deque<letter> letters_;
    table<letter_way, int> open_notices_;  ///< how many letters are notices, and open; no entry for none
    std::vector<letter*> unused_;
    table<hearsay_key, hearsay> heard_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
