#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/protocol_case.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// The cases that are one step simpler than a given one, the boldest steps first.
class simpler_cases {
  public:
    explicit simpler_cases(const protocol_case& than) : than_(than) {
        without_faults();
        with([](protocol_case& c) { c.plain = true; });
        fewer_ranks();
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, than.size / 2, than.size - 1})
            if (size < than.size) with([&](protocol_case& c) { c.size = size; });
        with([](protocol_case& c) { c.faults.seed = 0; });
        for (std::size_t i = 0; i < than.faults.faults.size(); ++i) simpler_fault(i);
    }

    const std::vector<protocol_case>& all() const { return all_; }

  private:
    template <class Change>
    void with(Change&& change) {
        protocol_case changed = than_;
        change(changed);
        for (const fault& f : changed.faults.faults)
            if (rill::detail::trouble_with(f, changed.ranks) != nullptr) return;
        if (changed != than_) all_.push_back(std::move(changed));
    }

    void without_faults() {
        with([](protocol_case& c) { c.faults.faults.clear(); });
        for (std::size_t i = 0; i < than_.faults.faults.size(); ++i)
            with([&](protocol_case& c) {
                c.faults.faults.erase(c.faults.faults.begin() + static_cast<std::ptrdiff_t>(i));
            });
    }

    /// Lowers the number of ranks; ranks of faults that no longer exist become lower ones.
    void fewer_ranks() {
        for (const int ranks : {2, than_.ranks / 2, than_.ranks - 1}) {
            if (ranks < 2 || ranks >= than_.ranks) continue;
            with([&](protocol_case& c) {
                c.ranks = ranks;
                for (fault& f : c.faults.faults) {
                    f.from = std::min(f.from, ranks - 1);
                    f.to = std::min(f.to, ranks - 1);
                    if (f.from == f.to && f.from >= 0 && f.is_of_messages()) --f.from;
                }
            });
        }
    }

    void simpler_fault(std::size_t i) {
        const fault& now = than_.faults.faults[i];
        const auto set = [&](auto fault::*member, auto value) {
            with([&](protocol_case& c) { c.faults.faults[i].*member = value; });
        };
        const bool has_chance = now.kind <= fault::what::duplicate || now.kind == fault::what::reorder;
        if (has_chance) set(&fault::amount, 1.0);
        if (now.both_ways) set(&fault::both_ways, false);
        for (const auto begins : {std::int64_t{0}, now.begins.ns / 2}) set(&fault::begins, duration(begins));
        for (const auto skipped : {std::uint64_t{0}, now.skipped / 2, now.skipped - 1})
            if (skipped < now.skipped) set(&fault::skipped, skipped);
        if (now.longest.ns > 1) set(&fault::longest, duration(now.longest.ns / 2));
        for (rank_t r = 0; r < now.from; ++r)
            if (r != now.to) everywhere(now.from, r);
        for (rank_t r = 0; r < now.to; ++r)
            if (r != now.from) everywhere(now.to, r);
    }
    /// Replaces a rank by another one in all faults, so that a restart still concerns the rank that is killed.
    void everywhere(rank_t old, rank_t rank) {
        with([&](protocol_case& c) {
            for (fault& f : c.faults.faults) {
                if (f.from == old) f.from = rank;
                if (f.to == old) f.to = rank;
            }
        });
    }

    const protocol_case& than_;
    std::vector<protocol_case> all_;
};

}  // namespace detail

/// Simplifies a failing case as long as `still_fails(case)` returns true, in at most `most_runs` calls. Simpler is:
/// fewer faults, a plain network, fewer ranks, less data, and faults that begin at once, are certain, go one way, or
/// hit lower ranks.
template <class Fails>
protocol_case shrink(protocol_case failing, int most_runs, Fails&& still_fails) {
    for (bool got_simpler = true; got_simpler;) {
        got_simpler = false;
        protocol_case next = failing;
        const detail::simpler_cases simpler(failing);
        for (const protocol_case& each : simpler.all()) {
            if (most_runs-- <= 0) return failing;
            if (!still_fails(each)) continue;
            next = each;
            got_simpler = true;
            break;
        }
        failing = next;
    }
    return failing;
}

}}}  // namespace rill::RILL_ABI::testing
