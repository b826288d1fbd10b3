#include "partial.hpp"

#include "code.hpp"
#include "report.hpp"
#include "stragglers.hpp"

#include <rill/core/random.hpp>
#include <rill/transport/compute_times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace plan {

namespace {

constexpr std::uint64_t most_events = 4'000'000;

/// How many of so many ranks are asked in each round, and whether all of them must be ready.
struct trigger {
    int asked = 1;
    bool all = false;
};
/// A gradient counts up to this age; a rank that has pushed so many at the newest version waits for the next one.
struct staleness {
    std::uint64_t oldest = 0;
    std::uint64_t lead = 0;
};

/// The number behind `name:`, from `least` to `most`; none if the text is another one.
bool has_number(const std::string& text, const std::string& name, long least, long most, long& number) {
    if (text.rfind(name + ":", 0) != 0) return false;
    char* end = nullptr;
    number = std::strtol(text.c_str() + name.size() + 1, &end, 10);
    return end != text.c_str() + name.size() + 1 && *end == '\0' && least <= number && number <= most;
}

trigger trigger_of(const std::string& text, int ranks) {
    long probes = 0;
    if (text == "all_ready") return {.asked = ranks, .all = true};
    if (text == "solo") return {.asked = ranks};
    if (text == "majority") return {.asked = 1};
    if (has_number(text, "two_choices", 1, ranks, probes)) return {.asked = static_cast<int>(probes)};
    throw wrong_argument("--trigger: '" + text +
                         "' is none of all_ready, majority, solo, two_choices:PROBES, with PROBES from 1 to the "
                         "number of ranks");
}

staleness staleness_of(const std::string& text) {
    constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    long rounds = 0;
    if (text == "in_step") return {.oldest = any, .lead = 1};
    if (text == "unbounded") return {.oldest = any, .lead = any};
    if (has_number(text, "bounded", 1, 1'000'000, rounds))
        return {.oldest = static_cast<std::uint64_t>(rounds), .lead = static_cast<std::uint64_t>(rounds)};
    throw wrong_argument("--staleness: '" + text +
                         "' is none of in_step, unbounded, bounded:ROUNDS, with ROUNDS at "
                         "least 1");
}

/// One rank. Times are seconds.
struct worker {
    double ready = 0;                     ///< when its gradient is
    bool waits = false;                   ///< for the next version, without computing
    std::uint64_t computed = 0;           ///< gradients
    std::uint64_t version = 0;            ///< that it computes at
    std::uint64_t lead = 0;               ///< pushes at the newest version
    std::deque<std::uint64_t> waiting{};  ///< the versions of gradients that no round has taken
};

/// Means per round and per second.
struct pace {
    double rounds = 0, gradients = 0, contributors = 0, age = 0;
};

/// Rounds that follow each other, of ranks that compute meanwhile.
class play {
  public:
    play(const arguments& chosen, int ranks, double exchange)
        : model_(compute_model_of(chosen)),
          starts_(trigger_of(chosen.trigger, ranks)),
          age_(staleness_of(chosen.staleness)),
          exchange_(exchange),
          draw_(rill::random_key{chosen.seed}),
          workers_(static_cast<std::size_t>(ranks)),
          order_(workers_.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        for (std::size_t rank = 0; rank < workers_.size(); ++rank) begin(rank, 0);
    }

    pace run(std::uint64_t rounds) {
        double end = 0, taken = 0, contributors = 0, ages = 0;
        for (; version_ < rounds; ++version_) {
            const double start = start_after(end);
            for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
                compute(rank, start);
                double own = 0;
                for (const std::uint64_t at : std::exchange(workers_[rank].waiting, {})) {
                    if (version_ - at > age_.oldest) continue;
                    own += 1;
                    ages += static_cast<double>(version_ - at);
                }
                taken += own;
                contributors += own > 0 ? 1 : 0;
            }
            end = start + exchange_;
            for (std::size_t rank = 0; rank < workers_.size(); ++rank) compute(rank, end);
            for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
                workers_[rank].lead = 0;
                if (std::exchange(workers_[rank].waits, false)) begin(rank, end, version_ + 1);
            }
        }
        const auto all = static_cast<double>(rounds);
        return {all / end, taken / end, contributors / all, ages / taken};
    }

  private:
    void begin(std::size_t rank, double now, std::uint64_t version = 0) {
        worker& each = workers_[rank];
        each.ready = now + model_(static_cast<rill::rank_t>(rank), each.computed++, 1).seconds();
        each.version = version;
    }
    /// Lets a rank compute until `until`, at the version that holds until then.
    void compute(std::size_t rank, double until) {
        worker& each = workers_[rank];
        while (!each.waits && each.ready <= until) {
            each.waiting.push_back(each.version);
            each.lead += each.version == version_ ? 1 : 0;
            each.waits = each.lead >= age_.lead;
            if (!each.waits) begin(rank, each.ready, version_);
        }
    }
    /// When the next round starts, not before `end`.
    double start_after(double end) {
        double start = starts_.all ? end : std::numeric_limits<double>::infinity();
        const auto size = static_cast<std::uint64_t>(order_.size());
        for (std::uint64_t drawn = 0; drawn < static_cast<std::uint64_t>(starts_.asked); ++drawn) {
            std::swap(order_[drawn], order_[drawn + draw_.below(size - drawn)]);
            const worker& each = workers_[order_[drawn]];
            const double ready = each.waiting.empty() ? std::max(end, each.ready) : end;
            start = starts_.all ? std::max(start, ready) : std::min(start, ready);
        }
        return start;
    }

    rill::compute_model model_;
    trigger starts_;
    staleness age_;
    double exchange_;
    rill::random_sequence draw_;
    std::vector<worker> workers_;
    std::vector<std::size_t> order_;
    std::uint64_t version_ = 0;  ///< rounds that have ended
};

}  // namespace

void require_policies(const arguments& chosen) {
    trigger_of(chosen.trigger, chosen.ranks);
    staleness_of(chosen.staleness);
}

void print_partial(const arguments& chosen, const forecast& all) {
    const row& how = all.recommended();
    const pace seen = play(chosen, all.ranks, how.computing + how.exchange)
                          .run(most_events / static_cast<std::uint64_t>(1000 + all.ranks));
    const double barrier = all.ranks / how.step;
    std::printf(
        "\nPartial rounds, %s and %s: %.4g a second, %.1f of %d ranks in each; gradients are %.1f rounds old.\n"
        "They count %.4g gradients a second, %.2f times as many as this step (%.4g).\n",
        chosen.trigger.c_str(), chosen.staleness.c_str(), seen.rounds, seen.contributors, all.ranks, seen.age,
        seen.gradients, seen.gradients / barrier, barrier);
    std::printf("A gradient that is late is worth less: choose a smaller rate, and compare trainings.\nIn C++:\n\n%s",
                code_of_partial(chosen.trigger, chosen.staleness, how.topology).c_str());
}

}  // namespace plan
