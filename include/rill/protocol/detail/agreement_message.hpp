#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What the members of a view decide when it ends.
struct agreement_decision {
    rill::view next{};
    std::uint64_t step = 0;  ///< the last committed one
    /// It says the same as the view that it ends: no member has gone or come, no step has become committed.
    bool is_fruitless = false;
    bool is_parted = false;         ///< a member that stays is lost to another
    std::vector<rank_t> unheard{};  ///< members of `next` that have not answered; they may lack the step
    std::vector<rank_t> left{};     ///< members that have asked to be left out, ascending

    friend bool operator==(const agreement_decision&, const agreement_decision&) = default;
};

/// Ballots are ordered by attempt, then by rank. Attempt 0 is none.
struct agreement_ballot {
    std::uint32_t attempt = 0;
    rank_t rank = no_rank;

    friend auto operator<=>(const agreement_ballot&, const agreement_ballot&) = default;
};

/// One life of a rank.
struct agreement_seat {
    rank_t rank = no_rank;
    std::uint64_t incarnation = 0;

    friend auto operator<=>(const agreement_seat&, const agreement_seat&) = default;
};

/// The life of a member; 0 where the view does not tell, or the rank is no member.
inline std::uint64_t life_in(const view& of, rank_t rank) {
    const auto found = std::lower_bound(of.members.begin(), of.members.end(), rank);
    const auto at = static_cast<std::size_t>(found - of.members.begin());
    return found != of.members.end() && *found == rank && at < of.incarnations.size() ? of.incarnations[at] : 0;
}
/// Whether this life of a rank is a member.
inline bool lists(const view& of, rank_t rank, std::uint64_t life) {
    return of.contains(rank) && life_in(of, rank) == life;
}

/// What members of a view tell each other at its end.
struct agreement_message {
    enum class what : std::uint8_t {
        call = 1,   ///< to a coordinator: begin a ballot
        collect,    ///< from it: answer, and look for the ranks `others`, which have not
        answer,     ///< the sender is frozen; `others` are those that it has lost
        refuse,     ///< the sender has answered in the higher ballot `at`
        propose,    ///< `value`
        accepted,   ///< the proposal
        decide,     ///< `value` is decided; also the answer to whoever is in an earlier epoch
        no_quorum,  ///< `others` are missing
        join,       ///< a newcomer asks to be taken in
        hello,      ///< a rank has begun, and asks whether there is a view yet
        finished    ///< the sender takes no further step, and answers until nobody does
    };
    /// How a message says the members of `value.next`.
    enum class form : std::uint8_t {
        difference,  ///< from the members of the view that `value` ends
        whole,       ///< to a rank that may not know that view
        unread       ///< it was a difference from a view that the receiver does not know, and is empty
    };
    what kind = what::call;
    form view_is = form::difference;
    std::uint32_t epoch = 0;  ///< of the view that ends
    agreement_ballot at{};
    agreement_ballot accepted_at{};  ///< of an answer: when it has accepted `value`
    agreement_decision value{};
    std::uint64_t prepared = 0;   ///< of an answer: the last step of which the sender has the whole result
    std::uint64_t committed = 0;  ///< of an answer
    bool leaves = false;          ///< of an answer: the sender is to be left out
    bool lacks = false;       ///< of an answer: it has given up the result of `prepared`, which it has not committed
    std::uint64_t build = 0;  ///< of a hello: a hash of what all ranks must have alike
    std::uint64_t lives = 0;  ///< of a hello: a hash of the first view that the sender has heard; 0 before it is whole
    std::vector<rank_t> others{};  ///< see `what`; of a hello: of whom the sender has heard nothing for a while
    std::vector<rank_t> ended{};   ///< of an answer: members whose end the sender has been told
    /// Of an answer: newcomers that it knows. Of a join or hello: the sender, and whom it means; of a hello then those
    /// of the first view that have ended, or that the receiver lacks.
    std::vector<agreement_seat> joins{};
};

}}}  // namespace rill::RILL_ABI::detail
