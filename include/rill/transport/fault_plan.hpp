#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Any rank, where a fault asks for one.
inline constexpr rank_t any_rank = -2;

/// One thing that goes wrong, or right again, in a network. Faults are of the messages between ranks: abort notices and
/// what ranks say of the calls that they have entered get through all but a killed rank.
struct fault {
    enum class what : std::uint8_t {
        loss,       ///< messages from `from` to `to` are lost, each with the probability `amount`
        duplicate,  ///< they arrive twice, each with the probability `amount`
        delay,      ///< they take up to `longest` longer, uniformly; a link still keeps their order
        reorder,    ///< each waits, with the probability `amount`, until one of another sender has overtaken it
        cut,        ///< the link from `from` to `to` loses everything
        heal,       ///< it works again
        kill,       ///< `from` ends without a word: see `rank_killed`
        restart,    ///< `from`, once killed, begins anew, `begins` after its end
        slow        ///< computing takes `from` `amount` times as long
    };

    what kind = what::loss;
    rank_t from = any_rank;
    rank_t to = any_rank;
    bool both_ways = false;     ///< and from `to` to `from`
    double amount = 0;          ///< a probability, or a factor
    duration longest{};         ///< of a delay; how long a message waits at most to be overtaken
    duration begins{};          ///< not before this time since the start of the run
    std::uint64_t skipped = 0;  ///< and not before so many messages: on the link; posted by the rank in this life

    /// The same at or after a time.
    constexpr fault at(duration time) const { return with(&fault::begins, time); }
    /// The same after so many messages of the link, in each direction; of `kill` and `slow`, posted by the rank.
    constexpr fault after(std::uint64_t messages) const { return with(&fault::skipped, messages); }
    /// The same between these two ranks alone, in this direction.
    constexpr fault on(rank_t source, rank_t receiver) const {
        return with(&fault::from, source).with(&fault::to, receiver);
    }
    /// The same between these two ranks alone, in both directions.
    constexpr fault between(rank_t one, rank_t other) const { return on(one, other).with(&fault::both_ways, true); }

    /// Whether it is of messages, rather than of a rank.
    constexpr bool is_of_messages() const { return kind < what::kill; }
    constexpr bool is_of_link(rank_t source, rank_t receiver) const {
        return leads(source, receiver) || (both_ways && leads(receiver, source));
    }
    /// At the `number`-th message from 1.
    constexpr bool has_begun(duration now, std::uint64_t number) const { return now >= begins && number > skipped; }

    friend bool operator==(const fault&, const fault&) = default;

  private:
    constexpr bool leads(rank_t one, rank_t other) const {
        return (from == any_rank || from == one) && (to == any_rank || to == other);
    }
    template <class T>
    constexpr fault with(T fault::*member, T value) const {
        fault changed = *this;
        changed.*member = value;
        return changed;
    }
};

/// The faults that a plan is made of.
namespace faults {

/// Each message is lost with this probability.
constexpr fault lose(double probability) { return {.kind = fault::what::loss, .amount = probability}; }
/// Each message arrives twice with this probability.
constexpr fault duplicate(double probability) { return {.kind = fault::what::duplicate, .amount = probability}; }
/// Each message takes longer, uniformly up to this.
constexpr fault delay_up_to(duration longest) { return {.kind = fault::what::delay, .longest = longest}; }
/// Each message waits with this probability until one of another sender has overtaken it, at most so long.
constexpr fault reorder(double probability, duration longest) {
    return {.kind = fault::what::reorder, .amount = probability, .longest = longest};
}
/// A directed link loses everything, until it is healed.
constexpr fault cut(rank_t from, rank_t to) { return {.kind = fault::what::cut, .from = from, .to = to}; }
/// Nothing gets through between two ranks, until it is healed.
constexpr fault cut_between(rank_t one, rank_t other) { return cut(one, other).between(one, other); }
/// A link that was cut works again.
constexpr fault heal(rank_t from, rank_t to) { return {.kind = fault::what::heal, .from = from, .to = to}; }
/// Both links between two ranks work again.
constexpr fault heal_between(rank_t one, rank_t other) { return heal(one, other).between(one, other); }
/// A rank ends without a word.
constexpr fault kill(rank_t rank) { return {.kind = fault::what::kill, .from = rank}; }
/// A killed rank begins anew, as long after its end as `at` says.
constexpr fault restart(rank_t rank) { return {.kind = fault::what::restart, .from = rank}; }
/// Computing takes a rank `factor` times as long.
constexpr fault slow(rank_t rank, double factor) { return {.kind = fault::what::slow, .from = rank, .amount = factor}; }

}  // namespace faults

/// What goes wrong in a run, in the order of the list: of a cut and a heal of one link, the later one that has begun
/// counts. A rank's first kill ends its first life, its second the life after its first restart, and so on. The same
/// plan in the same network makes the same run. `to_string` prints it, `parse_fault_plan` reads that.
struct fault_plan {
    std::vector<fault> faults;
    std::uint64_t seed = 0;  ///< of everything that has a probability

    bool empty() const { return faults.empty(); }
    friend bool operator==(const fault_plan&, const fault_plan&) = default;
};

/// Leaves the body of a rank whose end is planned, from its next call of the transport. Not derived from anything, so
/// that a body that handles errors does not take it for one; who catches it with `...` gets it again at the next call.
struct rank_killed {
    rank_t rank = no_rank;
};

}}  // namespace rill::RILL_ABI
