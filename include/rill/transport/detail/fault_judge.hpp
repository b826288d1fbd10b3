#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/fault_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rill::inline RILL_ABI::detail {

/// What a plan says of a message, or of a rank, at a time. It has no memory: the same question has the same answer.
class fault_judge {
  public:
    explicit fault_judge(fault_plan plan) : plan_(std::move(plan)) {}

    const fault_plan& plan() const { return plan_; }
    bool is_idle() const { return plan_.empty(); }

    struct verdict {
        bool lost = false;
        bool twice = false;
        duration late{};
    };

    /// Of the `number`-th message of a link, from 1.
    verdict of_message(rank_t source, rank_t receiver, std::uint64_t number, duration now) const {
        verdict all;
        bool is_cut = false;
        for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
            const fault& f = plan_.faults[i];
            if (!f.is_of_link(source, receiver) || !f.has_begun(now, number)) continue;
            const double u = draw(i, source, receiver, number);
            switch (f.kind) {
                case fault::what::loss: all.lost |= u < f.amount; break;
                case fault::what::duplicate: all.twice |= u < f.amount; break;
                case fault::what::delay:
                    all.late = all.late + duration(static_cast<std::int64_t>(u * f.amount * 1e9));
                    break;
                case fault::what::cut: is_cut = true; break;
                case fault::what::heal: is_cut = false; break;
                default: break;
            }
        }
        all.lost |= is_cut;
        return all;
    }

    /// The kill that ends a rank's life, its first being 0.
    const fault* end_of(rank_t rank, std::uint64_t life) const { return of_life(fault::what::kill, rank, life); }
    /// What begins the life after that.
    const fault* restart_after(rank_t rank, std::uint64_t life) const {
        return of_life(fault::what::restart, rank, life);
    }

    double slowness(rank_t rank, duration now) const {
        double factor = 1;
        for (const fault& f : plan_.faults)
            if (f.kind == fault::what::slow && (f.from == any_rank || f.from == rank) && now >= f.begins)
                factor = f.amount;
        return factor;
    }

  private:
    const fault* of_life(fault::what kind, rank_t rank, std::uint64_t life) const {
        for (const fault& f : plan_.faults)
            if (f.kind == kind && f.from == rank && life-- == 0) return &f;
        return nullptr;
    }

    /// In [0, 1).
    double draw(std::size_t i, rank_t source, rank_t receiver, std::uint64_t number) const {
        const std::uint64_t bits =
            mix64(plan_.seed, i, static_cast<unsigned>(source), static_cast<unsigned>(receiver), number);
        return static_cast<double>(bits >> 11U) * 0x1p-53;
    }

    fault_plan plan_;
};

}  // namespace rill::inline RILL_ABI::detail
