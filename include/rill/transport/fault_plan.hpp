#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Stands for any rank in a fault.
inline constexpr rank_t any_rank = -2;

/// One thing that goes wrong, or right again, in a network. Faults affect the messages between ranks, and control where
/// it travels, which is the default: notices and inquiries are delayed, and lost until they are repeated (see
/// `simulated::network::control` and `fault_scene`). Where control is ideal, they always arrive, except from a killed
/// rank.
struct fault {
    enum class what : std::uint8_t {
        loss,       ///< messages from `from` to `to` are lost, each with the probability `amount`
        duplicate,  ///< messages arrive twice, each with the probability `amount`
        delay,      ///< messages take up to `longest` longer, uniformly; a link still keeps their order
        reorder,    ///< messages wait, each with the probability `amount`, until one of another sender overtakes it
        cut,        ///< the link from `from` to `to` loses everything
        heal,       ///< the link from `from` to `to` works again
        kill,       ///< rank `from` ends without notice: see `rank_killed`
        restart,    ///< rank `from`, once killed, begins anew `begins` after its end
        slow,       ///< computations of rank `from` take `amount` times as long
        start       ///< rank `from` begins only at `begins`; it takes a free seat then
    };

    what kind = what::loss;
    rank_t from = any_rank;
    rank_t to = any_rank;
    bool both_ways = false;     ///< also from `to` to `from`
    double amount = 0;          ///< a probability, or a factor
    duration longest{};         ///< the longest delay, or how long a message waits at most to be overtaken
    duration begins{};          ///< begins at this time after the start of the run, or later
    std::uint64_t skipped = 0;  ///< begins after this many messages of the link, or of the rank in its present life

    /// This fault, beginning at `time` or later.
    constexpr fault at(duration time) const { return with(&fault::begins, time); }
    /// This fault, beginning after `messages` messages of the link, counted per direction; for `kill` and `slow`, after
    /// as many posts of the rank.
    constexpr fault after(std::uint64_t messages) const { return with(&fault::skipped, messages); }
    /// This fault, restricted to messages from `source` to `receiver`.
    constexpr fault on(rank_t source, rank_t receiver) const {
        return with(&fault::from, source).with(&fault::to, receiver);
    }
    /// This fault, restricted to messages between two ranks, in both directions.
    constexpr fault between(rank_t one, rank_t other) const { return on(one, other).with(&fault::both_ways, true); }

    /// True for faults of messages, false for faults of a rank.
    constexpr bool is_of_messages() const { return kind < what::kill; }
    constexpr bool is_of_link(rank_t source, rank_t receiver) const {
        return leads(source, receiver) || (both_ways && leads(receiver, source));
    }
    /// Whether it has begun at time `now` and message `number`, counted from 1.
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

/// Makes the faults of a plan.
namespace faults {

/// Each message is lost with this probability.
constexpr fault lose(double probability) { return {.kind = fault::what::loss, .amount = probability}; }
/// Each message arrives twice with this probability.
constexpr fault duplicate(double probability) { return {.kind = fault::what::duplicate, .amount = probability}; }
/// Each message takes longer, by a time drawn uniformly up to `longest`.
constexpr fault delay_up_to(duration longest) { return {.kind = fault::what::delay, .longest = longest}; }
/// Each message waits with this probability until one of another sender has overtaken it, at most for `longest`.
constexpr fault reorder(double probability, duration longest) {
    return {.kind = fault::what::reorder, .amount = probability, .longest = longest};
}
/// A directed link loses everything, until it is healed.
constexpr fault cut(rank_t from, rank_t to) { return {.kind = fault::what::cut, .from = from, .to = to}; }
/// Both links between two ranks lose everything, until they are healed.
constexpr fault cut_between(rank_t one, rank_t other) { return cut(one, other).between(one, other); }
/// A link that was cut works again.
constexpr fault heal(rank_t from, rank_t to) { return {.kind = fault::what::heal, .from = from, .to = to}; }
/// Both links between two ranks work again.
constexpr fault heal_between(rank_t one, rank_t other) { return heal(one, other).between(one, other); }
/// A rank ends without notice.
constexpr fault kill(rank_t rank) { return {.kind = fault::what::kill, .from = rank}; }
/// A killed rank begins anew; `at` sets the time between its end and the new beginning.
constexpr fault restart(rank_t rank) { return {.kind = fault::what::restart, .from = rank}; }
/// Computations of a rank take `factor` times as long.
constexpr fault slow(rank_t rank, double factor) { return {.kind = fault::what::slow, .from = rank, .amount = factor}; }

/// A rank takes a free seat and begins, at the time that `at` sets. Free seats are those beyond the ranks of the start.
constexpr fault start(rank_t rank) { return {.kind = fault::what::start, .from = rank}; }

}  // namespace faults

/// The faults of a run. Their order matters: of the cuts and heals of a link that have begun, the last in the list
/// counts; a rank's first kill ends its first life, its second kill the life after its first restart, and so on. Equal
/// plans in equal simulated networks make equal runs. `to_string` prints a plan, and `parse_fault_plan` reads it back.
struct fault_plan {
    std::vector<fault> faults;
    std::uint64_t seed = 0;  ///< of all random draws

    bool empty() const { return faults.empty(); }
    friend bool operator==(const fault_plan&, const fault_plan&) = default;
};

/// Thrown by the transport calls of a rank that the plan has killed, to end its body. It has no base class, so that a
/// body that handles errors does not mistake it for one; if `catch (...)` swallows it, the next call throws it again.
struct rank_killed {
    rank_t rank = no_rank;
};

}}  // namespace rill::RILL_ABI
