#pragma once

#include <rill/concept/replica.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// What the laws of replicas try.
struct replica_trials {
    std::vector<int> ranks{1, 2, 3, 5};
    int serving = 0;          ///< how many ranks, the last ones, only serve: their `pull` never returns a model
    std::uint64_t seeds = 5;  ///< how often each law is tried with so many ranks, each time at other speeds
};

namespace detail {

inline constexpr std::size_t replica_coordinates = 7;
inline constexpr std::uint64_t most_pulls = 1000;

/// One run of a replica.
struct replica_case {
    int ranks = 1;
    int serving = 0;
    std::uint64_t seed = 0;
    bool one_ends = false;  ///< one rank ends the run for all, else all retire
    bool spoils = false;    ///< the first push of each rank holds a value that is not finite
    bool misuses = false;   ///< calls that are not allowed are tried in between

    /// The rank that ends the run.
    rank_t ender() const {
        return one_ends ? static_cast<rank_t>(seed % static_cast<std::uint64_t>(ranks - serving)) : no_rank;
    }
    std::uint64_t draw(rank_t rank, const char* what, std::uint64_t below) const {
        return random_sequence(random_key{seed}.derive(fingerprint(what), rank)).below(below);
    }
    /// How often a rank steps before it leaves; one that does not leave by itself must be told the end before.
    std::uint64_t steps(rank_t rank) const {
        if (one_ends && rank != ender()) return most_pulls;
        return (spoils ? 5 : 0) + draw(rank, "steps", 10);
    }
    std::size_t spoilt_coordinate(rank_t rank) const { return draw(rank, "coordinate", replica_coordinates); }

    /// Each gradient takes between 1 and 10 ms, and on some ranks three times as long.
    simulated::network network() const {
        return {.latency = microseconds(20), .computing = [*this](rank_t rank, std::uint64_t step, double) {
                    const double more = counter_rng(random_key{seed}.derive(rank)).uniform(step);
                    const std::int64_t factor = draw(rank, "pace", 3) == 0 ? 3 : 1;
                    return microseconds(factor * static_cast<std::int64_t>(1000 + 9000 * more));
                }};
    }
};

/// What one rank has seen of a run.
template <class T>
struct replica_account {
    std::uint64_t pushes = 0;
    std::vector<push_fate> fates;
    std::vector<std::uint64_t> versions;
    std::vector<T> model;
    time_point ended_at{};

    friend bool operator==(const replica_account&, const replica_account&) = default;
};

/// The loop of one rank.
template <class T, class R>
class replica_loop {
    static_assert(Replica<R, T>,
                  "rill::testing::for_each_replica_law: what `make` returns does not model Replica; see "
                  "rill/concept/replica.hpp");

  public:
    replica_loop(simulated::endpoint& net, const replica_case& of, R& replica, std::vector<T>& model,
                 replica_account<T>& seen)
        : net_(net), of_(of), replica_(replica), model_(model), seen_(seen), gradient_(model.size()) {}

    void run() {
        if (of_.misuses) refused("a version that was never pulled", [&] { replica_.push(gradient_, {.version = 0}); });
        while (const auto held = replica_.pull(model_)) {
            expect(net_.rank() < of_.ranks - of_.serving, "pull returns a model on a rank that only serves");
            expect(!has_left_, "pull returns a model after retire or end");
            expect(seen_.versions.size() < most_pulls, "pull returns models long after a rank has ended the run");
            seen_.versions.push_back(held->version);
            if (of_.misuses) misuse(*held);
            step(*held);
            take_fates();
        }
        finish();
    }

  private:
    void step(const held_version& held) {
        if (seen_.versions.size() <= of_.steps(net_.rank())) {
            net_.compute(1);
            const std::uint64_t pushes = 1 + of_.draw(net_.rank(), "pushes", 2);
            for (std::uint64_t i = 0; i < pushes; ++i) push(held);
            return;
        }
        net_.rank() == of_.ender() ? replica_.end() : replica_.retire();
        has_left_ = true;
        if (of_.misuses) refused("retire or end", [&] { replica_.push(gradient_, held); });
    }

    /// Some of the model, so that a run which has come off its way stays off, and something of its own.
    void push(const held_version& held) {
        const counter_rng draw(random_key{of_.seed}.derive(net_.rank(), seen_.pushes));
        for (std::size_t i = 0; i < gradient_.size(); ++i)
            gradient_[i] = model_[i] / 8 + static_cast<T>(draw.uniform(i) - 0.5);
        if (of_.spoils && seen_.pushes == 0)
            gradient_[of_.spoilt_coordinate(net_.rank())] =
                of_.seed % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
        replica_.push(std::as_const(gradient_), held);
        ++seen_.pushes;
    }

    /// One more than there may be shows that one was told twice.
    void take_fates() {
        while (seen_.fates.size() <= seen_.pushes) {
            const std::optional<push_fate> told = replica_.fate();
            if (!told) return;
            seen_.fates.push_back(*told);
        }
    }

    void finish() {
        take_fates();
        seen_.model = model_;
        seen_.ended_at = std::as_const(net_).now();
        expect(!replica_.pull(model_), "pull returns a model after it has returned nothing");
        expect(model_ == seen_.model, "pull writes another model after the final one");
        take_fates();
    }

    void misuse(const held_version& held) {
        std::vector<T> other(model_.size() + 1);
        refused("a gradient of another size", [&] { replica_.push(std::as_const(other), held); });
        refused("a model of another size", [&] { replica_.pull(other); });
        refused("a version that was never pulled", [&] { replica_.push(gradient_, {.version = held.version + 1}); });
    }
    template <class Call>
    void refused(const char* what, Call&& call) {
        const std::uint64_t sent = net_.counted().messages_sent;
        bool is_refused = false;
        try {
            call();
        } catch (const contract_violation&) {
            is_refused = true;
        }
        if (!is_refused) throw law_failure(std::string("a call is not refused: ") + what);
        expect_equal(net_.counted().messages_sent, sent, "messages that were sent before a call was refused");
    }

    simulated::endpoint& net_;
    const replica_case& of_;
    R& replica_;
    std::vector<T>& model_;
    replica_account<T>& seen_;
    std::vector<T> gradient_;
    bool has_left_ = false;
};

/// Runs the loop on all ranks. Throws the first law that a rank has found broken, or else what has ended the run.
template <class T, class Make>
std::vector<replica_account<T>> try_replica(const Make& make, const replica_case& of) {
    std::vector<replica_account<T>> all(static_cast<std::size_t>(of.ranks));
    std::optional<law_failure> broken;
    const auto on_one_rank = [&](simulated::endpoint& net) {
        std::vector<T> model(replica_coordinates, T{1});
        auto replica = make(net, std::as_const(model));
        try {
            replica_loop(net, of, replica, model, all[static_cast<std::size_t>(net.rank())]).run();
        } catch (const law_failure& found) {
            if (!broken) broken = found;
            throw;
        }
    };
    try {
        simulated::run(of.ranks, of.network(), on_one_rank);
    } catch (const std::exception&) {
        if (broken) throw law_failure(*broken);
        throw;
    }
    return all;
}

template <class T>
void each_push_has_one_fate(const std::vector<replica_account<T>>& all) {
    for (const replica_account<T>& seen : all) {
        std::vector<std::uint64_t> told(seen.pushes);
        for (const push_fate& fate : seen.fates) {
            expect(fate.push < seen.pushes, "a fate is told of a push that was never made");
            expect(++told[fate.push] == 1, "the fate of a push is told twice");
        }
        expect_equal(std::uint64_t{seen.fates.size()}, seen.pushes, "fates that were told of all pushes");
    }
}

template <class T>
void versions_do_not_fall(const std::vector<replica_account<T>>& all) {
    for (const replica_account<T>& seen : all)
        expect(std::is_sorted(seen.versions.begin(), seen.versions.end()), "a version is less than an earlier one");
}

template <class T>
void spoilt_pushes_are_refused(const std::vector<replica_account<T>>& all, const replica_case& of) {
    for (rank_t rank = 0; rank < of.ranks - of.serving; ++rank) {
        const replica_account<T>& seen = all[static_cast<std::size_t>(rank)];
        for (const push_fate& fate : seen.fates) {
            const bool is_spoilt = fate.push == 0;
            expect((fate.what == push_fate::outcome::not_finite) == is_spoilt,
                   "a push counts that is not finite, or one is refused that is");
            if (is_spoilt) expect_equal(fate.coordinate, of.spoilt_coordinate(rank), "the coordinate in a fate");
        }
        expect_equal(std::uint64_t{seen.versions.size()}, of.steps(rank) + 1, "models that a rank has pulled");
        for (const T value : seen.model) expect(value - value == 0, "the final model is not finite");
    }
}

}  // namespace detail

/// Checks a replica against the laws of the concept, in simulated networks whose ranks compute at random speeds.
///
/// `make(net, model)` makes one rank's replica on `simulated::endpoint& net`, with the first model
/// `const std::vector<T>& model`; it is collective. `visit(const char* name, const law_outcome&)` is called once per
/// law. What is refused is checked only where contracts are.
template <Element T = double, class Make, class Visit>
void for_each_replica_law(const Make& make, Visit&& visit, const replica_trials& trials = {}) {
    const auto law = [&](const char* name, detail::replica_case of, auto check) {
        law_outcome outcome;
        try {
            for (const int ranks : trials.ranks)
                for (of.seed = 0; of.seed < trials.seeds; ++of.seed) {
                    of.ranks = ranks;
                    of.serving = trials.serving;
                    check(detail::try_replica<T>(make, of), of);
                }
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, std::as_const(outcome));
    };
    const auto alone = [](auto check) { return [check](const auto& all, const detail::replica_case&) { check(all); }; };
    const auto nothing_more = [](const auto&, const detail::replica_case&) {};
    const auto one_fate = alone([](const auto& all) { detail::each_push_has_one_fate(all); });
    law("once all have retired, pull returns nothing on all ranks", {}, nothing_more);
    law("once one has ended the run, pull returns nothing on all ranks", {.one_ends = true}, nothing_more);
    law("each push has one fate, where all retire", {}, one_fate);
    law("each push has one fate, where one ends the run", {.one_ends = true}, one_fate);
    law("versions do not fall", {.one_ends = true}, alone([](const auto& all) { detail::versions_do_not_fall(all); }));
    law("what is not allowed is refused with nothing sent, and the run goes on", {.misuses = true}, one_fate);
    law("what is not finite is refused with its coordinate, and its rank goes on", {.spoils = true},
        [](const auto& all, const detail::replica_case& of) { detail::spoilt_pushes_are_refused(all, of); });
    law("the same run gives the same bits", {.one_ends = true}, [&](const auto& all, const detail::replica_case& of) {
        expect(all == detail::try_replica<T>(make, of), "a run that was repeated has another result");
    });
}

}}}  // namespace rill::RILL_ABI::testing
