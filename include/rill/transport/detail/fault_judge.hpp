#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Says why a fault is invalid among `ranks` ranks; null for a valid one.
inline const char* trouble_with(const fault& f, int ranks) {
    const auto exists = [&](rank_t rank) { return 0 <= rank && rank < ranks; };
    const auto may_be = [&](rank_t rank) { return rank == any_rank || exists(rank); };
    if (!may_be(f.from) || !may_be(f.to)) return "fault_plan: a fault names a rank that does not exist";
    if (f.begins.ns < 0 || f.longest.ns < 0) return "fault_plan: a time below 0";
    switch (f.kind) {
        case fault::what::loss:
        case fault::what::duplicate:
        case fault::what::reorder:
            return 0 <= f.amount && f.amount <= 1 ? nullptr : "fault_plan: a probability is between 0 and 1";
        case fault::what::slow:
            return f.amount >= 0 && std::isfinite(f.amount) ? nullptr
                                                            : "fault_plan: a factor is finite, and not below 0";
        case fault::what::restart:
        case fault::what::start:
            if (f.skipped != 0) return "fault_plan: a rank begins after a time, not after messages";
            [[fallthrough]];
        case fault::what::kill:
            return exists(f.from) ? nullptr : "fault_plan: a rank's end or beginning names the rank";
        default: return nullptr;
    }
}

/// Says what a plan does to a message, or to a rank, at a time. It is stateless: equal arguments give equal results.
class fault_judge {
  public:
    fault_judge(fault_plan plan, int ranks) : plan_(std::move(plan)) {
        for (const fault& f : plan_.faults) {
            [[maybe_unused]] const char* const trouble = trouble_with(f, ranks);
            RILL_EXPECTS(trouble == nullptr, trouble);
            concerns_messages_ |= f.is_of_messages();
            reorders_ |= f.kind == fault::what::reorder;
        }
    }

    const fault_plan& plan() const { return plan_; }
    bool is_idle() const { return plan_.empty(); }
    /// Whether the plan has faults of messages; if not, `of_message` need not be called.
    bool concerns_messages() const { return concerns_messages_; }
    bool reorders() const { return reorders_; }

    struct verdict {
        bool lost = false;
        bool twice = false;
        duration late{};
        duration held{};  ///< how long at most it waits to be overtaken
    };

    /// Judges the `number`-th message of a link, counted from 1.
    verdict of_message(rank_t source, rank_t receiver, std::uint64_t number, duration now) const {
        return judge(source, receiver, number, now, number);
    }

    /// Judges the `letter`-th control message of a link on which `number - 1` messages have been posted.
    verdict of_letter(rank_t source, rank_t receiver, std::uint64_t number, duration now, std::uint64_t letter) const {
        return judge(source, receiver, number, now, ~letter);
    }

    /// The kill that ends life number `life` of a rank, counted from 0; null where there is none.
    const fault* end_of(rank_t rank, std::uint64_t life) const { return of_life(fault::what::kill, rank, life); }
    /// The restart that follows life number `life` of a rank; null where there is none.
    const fault* restart_after(rank_t rank, std::uint64_t life) const {
        return of_life(fault::what::restart, rank, life);
    }

    /// The start of a rank that does not begin with the run; null where there is none.
    const fault* start_of(rank_t rank) const { return of_life(fault::what::start, rank, 0); }

    /// The factor of computing times of a rank that has posted `posted` messages.
    double slowness(rank_t rank, duration now, std::uint64_t posted) const {
        double factor = 1;
        for (const fault& f : plan_.faults)
            if (f.kind == fault::what::slow && (f.from == any_rank || f.from == rank) && f.has_begun(now, posted + 1))
                factor = f.amount;
        return factor;
    }

  private:
    /// `drawn`: the number by which chance is drawn.
    verdict judge(rank_t source, rank_t receiver, std::uint64_t number, duration now, std::uint64_t drawn) const {
        verdict all;
        bool is_cut = false;
        for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
            const fault& f = plan_.faults[i];
            if (!f.is_of_messages() || !f.is_of_link(source, receiver) || !f.has_begun(now, number)) continue;
            const double u = draw(i, source, receiver, drawn);
            switch (f.kind) {
                case fault::what::loss: all.lost |= u < f.amount; break;
                case fault::what::duplicate: all.twice |= u < f.amount; break;
                case fault::what::delay:
                    all.late = all.late + duration(static_cast<std::int64_t>(u * static_cast<double>(f.longest.ns)));
                    break;
                case fault::what::reorder:
                    if (u < f.amount) all.held = std::max(all.held, f.longest);
                    break;
                case fault::what::cut: is_cut = true; break;
                case fault::what::heal: is_cut = false; break;
                default: break;
            }
        }
        all.lost |= is_cut;
        return all;
    }

    const fault* of_life(fault::what kind, rank_t rank, std::uint64_t life) const {
        for (const fault& f : plan_.faults)
            if (f.kind == kind && f.from == rank && life-- == 0) return &f;
        return nullptr;
    }

    /// A number in [0, 1) for fault `i` and a message of a link.
    double draw(std::size_t i, rank_t source, rank_t receiver, std::uint64_t number) const {
        const std::uint64_t bits =
            mix64(plan_.seed, i, static_cast<unsigned>(source), static_cast<unsigned>(receiver), number);
        return static_cast<double>(bits >> 11U) * 0x1p-53;
    }

    fault_plan plan_;
    bool concerns_messages_ = false;
    bool reorders_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
