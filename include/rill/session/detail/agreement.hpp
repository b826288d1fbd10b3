#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How an attempt ended on one rank.
enum class outcome : std::uint32_t { done = 1, failed = 2, left = 3 };

/// What all ranks agree on after an attempt.
struct verdict {
    bool is_done = false;        ///< all ranks that have answered have completed the attempt
    std::vector<rank_t> gone{};  ///< ranks without which it is repeated, ascending; empty if it is done
};

/// One agreement among ranks of which some may have died, and others may die meanwhile.
///
/// Each rank says how its attempt ended and asks all others. A rank that hears "done" from everybody has decided: then
/// nobody can have heard anything else. The others decide in rounds, one for each member in ascending order: in its
/// round a member tells its verdict, and who hears it makes it its own. A member that stays alive is heard by all, so
/// that from its round on all have one verdict. A rank whose rounds are over says what it has decided, and ends the
/// rounds of all others: a member that dies in its round is not waited for by some and not by others.
///
/// All that ranks tell each other are calls that they announce and inquire: nothing depends on which abort notice wins.
template <Transport Net>
class agreement {
  public:
    /// `session` and `number` give the context: they are equal on all ranks, and the pair is never used again.
    agreement(Net& net, std::uint64_t session, std::uint64_t number) : net_(&net), context_(mix64(session, number)) {}
    agreement(const agreement&) = delete;
    agreement& operator=(const agreement&) = delete;
    ~agreement() { net_->close(context_); }

    /// Announces how this rank's attempt ended. Others can ask for it until long after this object has ended.
    void say(outcome own) { announce(asked, {static_cast<std::uint32_t>(own)}); }

    /// Says that this rank leaves, and returns when another has decided, or after `timeout`: then the others have heard
    /// it, and need no answer of a rank that may end now.
    void leave(std::span<const rank_t> members, duration timeout) {
        say(outcome::left);
        members_ = members;
        pause_ = timeout / 32;
        const auto other = std::find_if(members.begin(), members.end(), [&](rank_t r) { return r != net_->rank(); });
        try {
            if (other != members.end()) ask(*other, decided, net_->now() + timeout);
        } catch (const error&) {  // everything has ended
        }
    }

    /// Returns the verdict of all ranks. A rank that has said nothing when `timeout` is over counts as dead.
    verdict reach(std::span<const rank_t> members, duration timeout) {
        members_ = members;
        pause_ = timeout / 32;
        verdict own = hear(timeout);
        if (!decided_) own = settle(own, timeout);
        if (decided_) own = *decided_;
        tell(decided, own);
        return own;
    }

  private:
    /// The numbers of the calls: the outcome, the verdict of a round, what has been decided. A verdict takes several.
    static constexpr std::uint64_t asked = 1, proposed = 2, decided = 30;
    static constexpr std::size_t ranks_per_call = std::tuple_size_v<decltype(call_options::hashes)>;
    static constexpr std::size_t most_gone =
        (decided - proposed) * ranks_per_call;  // the next verdict names the others
    static_assert(decided + (decided - proposed) <= calls_remembered);

    /// Asks all members, and gives a verdict by what they say. It is decided if all have said that they are done.
    verdict hear(duration timeout) {
        const duration least = timeout / 16;  // for the answer of the rank that is asked last
        const time_point end = net_->now() + timeout;
        verdict heard{.is_done = true};
        for (const rank_t member : members_)
            net_->inquire(member, context_, asked, deadline::immediate);  // all questions are under way at once
        for (const rank_t member : members_) {
            const auto said = ask(member, asked, std::max(end, net_->now() + least));
            if (decided_) return *decided_;
            const bool is_done = said && outcome_of(*said) == outcome::done;
            heard.is_done &= is_done || !said;
            const bool stays = said && outcome_of(*said) != outcome::left;
            (stays ? present_ : heard.gone).push_back(member);
        }
        if (heard.gone.size() > most_gone) heard.gone.resize(most_gone);
        if (heard.is_done && heard.gone.empty()) decided_ = heard;
        if (heard.is_done) heard.gone.clear();
        return heard;
    }

    /// The rounds. Members end `hear` within two timeouts of each other, and each round may have waited for one that
    /// died in it.
    verdict settle(verdict own, duration timeout) {
        const time_point begin = net_->now();
        duration longest{};
        for (const rank_t member : members_) {
            longest = longest + timeout * 4;
            if (member == net_->rank()) tell(proposed, own);
            if (member == net_->rank() || !contains(present_, member)) continue;
            const auto told = verdict_of(member, proposed, begin + longest);
            if (decided_) break;
            if (told) own = *told;
        }
        return own;
    }

    // --- what ranks tell each other

    void announce(std::uint64_t number, std::array<std::uint32_t, ranks_per_call> what, std::uint64_t count = 0) {
        net_->announce(
            context_,
            {.number = number, .kind = operation::handshake, .dimension = count, .options = {.hashes = what}});
    }

    /// Announces a verdict from call `number` on; the call that says how many ranks are gone comes last.
    void tell(std::uint64_t number, const verdict& own) {
        for (std::size_t part = own.gone.size() / ranks_per_call + 1; part-- > 0;) {
            std::array<std::uint32_t, ranks_per_call> ranks{};
            for (std::size_t i = 0; i < ranks_per_call && part * ranks_per_call + i < own.gone.size(); ++i)
                ranks[i] = static_cast<std::uint32_t>(own.gone[part * ranks_per_call + i]);
            announce(number + part, ranks, own.is_done ? done_mark : own.gone.size());
        }
    }

    std::optional<verdict> verdict_of(rank_t peer, std::uint64_t number, time_point until) {
        const auto first = ask(peer, number, until);
        return first ? read(peer, *first, until) : std::nullopt;
    }

    /// The verdict that begins with a call of `peer`; nothing if the peer dies before it has told all of it.
    std::optional<verdict> read(rank_t peer, call_signature part, time_point until) {
        verdict told{.is_done = part.dimension == done_mark};
        const std::size_t count = told.is_done ? 0 : static_cast<std::size_t>(part.dimension);
        for (std::size_t i = 0; i < count; ++i) {
            if (i > 0 && i % ranks_per_call == 0) {
                const auto next = net_->inquire(peer, context_, part.number + 1, until);
                if (!next || next->number != part.number + 1 || next->kind != operation::handshake) return std::nullopt;
                part = *next;
            }
            told.gone.push_back(static_cast<rank_t>(part.options.hashes[i % ranks_per_call]));
        }
        return told;
    }

    /// What `peer` has announced as call `number`; nothing when `until` has passed, or when `decided_` is known. Only
    /// an outcome is also known of a rank whose body has returned: it has left.
    std::optional<call_signature> ask(rank_t peer, std::uint64_t number, time_point until) {
        for (;;) {
            const auto said = net_->inquire(peer, context_, number, std::min(until, net_->now() + pause_));
            const bool is_told = said && said->number == number;
            if (is_told && (number == asked || said->kind == operation::handshake)) return said;
            if (is_told || has_decided(until) || net_->now() >= until) return std::nullopt;
        }
    }

    /// Whether a member has said what has been decided.
    bool has_decided(time_point until) {
        for (const rank_t member : members_) {
            if (member == net_->rank()) continue;
            const auto said = net_->inquire(member, context_, decided, deadline::immediate);
            if (!said || said->number != decided || said->kind != operation::handshake) continue;
            decided_ = read(member, *said, until);
            if (decided_) return true;
        }
        return false;
    }

    /// A rank whose body has returned has left.
    static outcome outcome_of(const call_signature& said) {
        return said.kind == operation::departure ? outcome::left : static_cast<outcome>(said.options.hashes[0]);
    }

    static constexpr std::uint64_t done_mark = ~std::uint64_t{0};

    Net* net_;
    std::uint64_t context_;
    std::span<const rank_t> members_{};
    std::vector<rank_t> present_{};  ///< the members that have said how their attempts ended, and stay
    duration pause_{};               ///< between two looks for a decision
    std::optional<verdict> decided_{};
};

}}}  // namespace rill::RILL_ABI::detail
