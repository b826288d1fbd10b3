#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/fault_plan.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// The kind of fault in a run; `draw_faults` turns it into a plan.
enum class fault_kind : std::uint8_t {
    none,
    delay,          ///< messages are late
    reorder,        ///< messages of different senders overtake each other
    slow,           ///< a rank computes slowly
    kill,           ///< a rank ends without a word
    restart,        ///< a rank ends without a word and begins anew later
    cut,            ///< a directed link loses everything, from some moment on
    cut_both_ways,  ///< nothing gets through between two ranks, from some moment on
    cut_and_heal,   ///< a link, or both of two ranks, loses everything for some time
    loss,           ///< messages are lost by chance
    duplicate       ///< messages arrive twice by chance
};

/// All kinds, in the order of the enumeration.
inline constexpr fault_kind every_fault_kind[] = {fault_kind::none, fault_kind::delay,         fault_kind::reorder,
                                                  fault_kind::slow, fault_kind::kill,          fault_kind::restart,
                                                  fault_kind::cut,  fault_kind::cut_both_ways, fault_kind::cut_and_heal,
                                                  fault_kind::loss, fault_kind::duplicate};

/// Returns the name for tables, e.g. "cut_both_ways".
constexpr const char* name(fault_kind kind) {
    constexpr const char* names[] = {"none", "delay",         "reorder",      "slow", "kill",     "restart",
                                     "cut",  "cut_both_ways", "cut_and_heal", "loss", "duplicate"};
    return names[static_cast<std::size_t>(kind)];
}

namespace detail {

/// Draws the random parts of a plan.
class fault_dice {
  public:
    fault_dice(int ranks, duration within, random_key key) : ranks_(ranks), within_(within), draw_(key) {}

    std::uint64_t below(std::uint64_t bound) { return draw_.below(bound); }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    duration time(duration most) {
        return duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.ns) + 1)));
    }
    duration moment() { return time(within_); }
    duration within() const { return within_; }

    rank_t rank() { return static_cast<rank_t>(below(static_cast<std::uint64_t>(ranks_))); }
    rank_t other_than(rank_t one) {
        const auto step = static_cast<rank_t>(1 + below(static_cast<std::uint64_t>(ranks_ - 1)));
        return (one + step) % ranks_;
    }

    /// Lets `f` begin at a moment of the run, or after some messages: amid a protocol's rounds, or from the start.
    fault begun(const fault& f) { return one_in(3) ? f.at(moment()) : f.after(below(one_in(2) ? 4 : 40)); }
    /// Puts `f` on one directed link.
    fault link_of(const fault& f) {
        const rank_t from = rank();
        return f.on(from, other_than(from));
    }
    /// Puts `f` on one directed link, or leaves it on all.
    fault somewhere(const fault& f) { return one_in(2) ? link_of(f) : f; }
    /// Returns 1, 1/2, 1/4, … or 1/64.
    double probability() {
        const auto halvings = below(7);
        return halvings == 0 ? 1.0 : 1.0 / static_cast<double>(std::uint64_t{1} << halvings);
    }

  private:
    int ranks_;
    duration within_;
    random_sequence draw_;
};

}  // namespace detail

/// Draws a random plan of one kind for a run of `ranks` ranks, at least 2. A fault that begins at a time begins in the
/// first `within` of the run; a link that is cut and healed works again by then. A pure function of its arguments.
inline fault_plan draw_faults(fault_kind kind, int ranks, duration within, random_key key) {
    RILL_EXPECTS(ranks >= 2 && within.ns > 0, "draw_faults: needs two ranks and some time");
    detail::fault_dice dice(ranks, within, key);
    fault_plan plan{.faults = {}, .seed = dice.below(1000)};
    const auto add = [&](const fault& f) { plan.faults.push_back(f); };
    switch (kind) {
        case fault_kind::none: break;
        case fault_kind::delay: add(dice.somewhere(faults::delay_up_to(dice.time(within / 100)))); break;
        case fault_kind::reorder: add(faults::reorder(dice.probability(), dice.time(within / 100))); break;
        case fault_kind::slow: add(faults::slow(dice.rank(), 1 + static_cast<double>(dice.below(50)))); break;
        case fault_kind::kill: add(dice.begun(faults::kill(dice.rank()))); break;
        case fault_kind::restart:
            add(dice.begun(faults::kill(dice.rank())));
            add(faults::restart(plan.faults[0].from).at(dice.moment()));
            break;
        case fault_kind::cut: add(dice.begun(dice.link_of(faults::cut(any_rank, any_rank)))); break;
        case fault_kind::cut_both_ways: {
            const fault one = dice.link_of(faults::cut(any_rank, any_rank));
            add(dice.begun(one.between(one.from, one.to)));
            break;
        }
        case fault_kind::cut_and_heal: {
            fault cut = dice.link_of(faults::cut(any_rank, any_rank));
            cut.both_ways = dice.one_in(2);
            fault heal = cut;
            heal.kind = fault::what::heal;
            add(dice.begun(cut));
            if (plan.faults[0].begins.ns == 0 && dice.one_in(2))  // the link may work again within the same call
                heal = heal.after(plan.faults[0].skipped + 1 + dice.below(3));
            else
                heal = heal.at(plan.faults[0].begins + dice.time(within - plan.faults[0].begins));
            add(heal);
            if (heal.begins.ns == 0) add(heal.after(0).at(within));
            break;
        }
        case fault_kind::loss: add(dice.somewhere(faults::lose(dice.probability()))); break;
        case fault_kind::duplicate: add(dice.somewhere(faults::duplicate(dice.probability()))); break;
    }
    return plan;
}

}}}  // namespace rill::RILL_ABI::testing
