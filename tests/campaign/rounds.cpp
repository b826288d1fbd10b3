// Rounds under every kind of fault, with every completion, staleness and tree. No contribution is in two results, each
// rank is told correctly whether its contribution was used, ranks that the policies may do without do not stop the
// rounds, and a rank that must stop names the rank for which it waited.
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/testing/coverage.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/sanitized.hpp"
#include "campaign_size.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace testing = rill::testing;
using namespace rill::straggler;

// Policies chosen at run time, so that the compiler instantiates rounds only once.
namespace policies {

struct any_completion {
    std::variant<wait_all, fastest, tolerate, until> chosen{};

    static constexpr const char* name = "any_completion";

    bool is_complete(const rill::gathering& g) const {
        return std::visit([&](const auto& c) { return c.is_complete(g); }, chosen);
    }
    rill::duration patience(int height) const {
        return std::visit([&](const auto& c) { return c.patience(height); }, chosen);
    }
    friend bool operator==(const any_completion&, const any_completion&) = default;
};

struct any_staleness {
    std::variant<fresh, bounded, unbounded> chosen{};

    static constexpr const char* name = "any_staleness";

    bool accepts(std::uint32_t age) const {
        return std::visit([&](const auto& s) { return s.accepts(age); }, chosen);
    }
    bool may_lead(std::uint32_t lag) const {
        return std::visit([&](const auto& s) { return s.may_lead(lag); }, chosen);
    }
    friend bool operator==(const any_staleness&, const any_staleness&) = default;
};

struct any_trigger {
    bool waits_for_all = false;

    static constexpr const char* name = "any_trigger";

    static bool asks(rill::rank_t, int, rill::random_key) { return true; }
    bool starts(std::span<const rill::rank_t> ready, int size, rill::random_key key) const {
        return waits_for_all ? all_ready::starts(ready, size, key) : solo::starts(ready, size, key);
    }
    friend bool operator==(const any_trigger&, const any_trigger&) = default;
};

}  // namespace policies

namespace {

using namespace policies;

const std::vector<std::string> completion_names{"wait_all", "fastest", "tolerate", "until"};
const std::vector<std::string> staleness_names{"fresh", "bounded", "unbounded"};
const std::vector<std::string> tree_names{"star", "tree of 2", "chain"};

/// The tree number `shape`; a star is a tree with any number of children.
rill::topology::tree tree_of(std::size_t shape, int ranks) {
    return {shape == 0 ? std::max(1, ranks - 1) : shape == 1 ? 2 : 1};
}

struct scene {
    std::size_t completion = 0, staleness = 0, shape = 0;
};

/// The policies of a run and what else is drawn for it, within the case that the scene names.
struct choice {
    rill::topology::tree tree;
    any_completion enough;
    any_staleness age;
    any_trigger start;
    std::uint64_t rounds = 0;
    bool has_codec = false;
    bool leads_only = false;      ///< the root contributes nothing
    rill::duration at_leisure{};  ///< the root takes this long for each round

    choice(const scene& of, const testing::protocol_case& drawn, const testing::protocol_limits& limits)
        : tree(tree_of(of.shape, drawn.ranks)) {
        rill::random_sequence draw(drawn.key());
        const auto below = [&](int bound) { return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound))); };
        const int few = 1 + below(std::min(drawn.ranks, 4)), some = below(3);
        const rill::duration soon{
            static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(2 * limits.latest_entry.ns)))};
        switch (of.completion) {
            case 0: enough.chosen = wait_all{}; break;
            case 1: enough.chosen = fastest{few}; break;
            case 2: enough.chosen = tolerate{few}; break;
            default: enough.chosen = until{.after = soon, .at_least = some};
        }
        switch (of.staleness) {
            case 0: age.chosen = fresh{}; break;
            case 1: age.chosen = bounded{static_cast<std::uint32_t>(below(4))}; break;
            default: age.chosen = unbounded{};
        }
        start.waits_for_all = below(8) == 0;
        rounds = 2 + draw.below(7);
        has_codec = below(3) == 0;
        leads_only = below(4) == 0;
        if (below(4) == 0) at_leisure = limits.timeout * 3 / 10;
    }

    /// Whether a rank with this many children can do without any one of them.
    bool does_without_one_of(int children) const {
        if (std::holds_alternative<bounded>(age.chosen) || start.waits_for_all) return false;
        if (const auto* t = std::get_if<tolerate>(&enough.chosen)) return t->stragglers >= 1;
        if (const auto* f = std::get_if<fastest>(&enough.chosen)) return f->count < children;
        if (const auto* u = std::get_if<until>(&enough.chosen)) return u->at_least < children;
        return false;
    }
};

// --- what a run records

/// The contribution of a rank in a round.
using part = std::pair<rill::rank_t, std::uint64_t>;

/// What the ranks of a run record. No rank acts upon it.
struct ledger {
    enum class fate : unsigned char { untold, out, in };
    struct made {
        fate told = fate::untold;
        bool at_end = false;  ///< the rank learned its fate after rounds had ended
        int in_results = 0;
        double mass = 0;  ///< sum of the sent values, where the rank was told that they are in a result
    };

    std::map<part, made> parts;
    double results_mass = 0;
    std::vector<bool> has_joined;
    std::vector<bool> has_failed;
    std::uint64_t rounds_done = 0;
};

/// Whole numbers, so that all sums are exact; all contributions differ.
double value(rill::rank_t rank, std::uint64_t round, std::size_t i) {
    return static_cast<double>(rill::mix64(static_cast<std::uint64_t>(rank), round) % (std::uint64_t{1} << 24U) + i);
}

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// --- one rank

class member {
  public:
    using group_type = rill::group<rill::simulated::endpoint, rill::topology::star>;
    using rounds_type = rill::rounds<group_type, rill::topology::tree, any_completion, any_staleness, any_trigger>;

    member(rill::simulated::endpoint& net, const testing::protocol_case& of, const testing::protocol_limits& limits,
           testing::rank_record& mine, const choice& chosen, ledger& all)
        : net_(&net), of_(&of), limits_(&limits), mine_(&mine), chosen_(&chosen), all_(&all) {}

    void play() {
        std::optional<group_type> workers;
        std::optional<rounds_type> steps;
        come(0);
        mine_->attempt({.name = "making"}, [&]() -> testing::call_result {
            workers.emplace(*net_, rill::topology::star{}, rill::group_options{.timeout = limits_->timeout});
            steps.emplace(*workers, chosen_->tree, chosen_->enough, chosen_->age, chosen_->start);
            return {.is_exact = true};  // a rank that is restarted before any other rank has missed it takes part
        });
        if (!steps) return;
        const auto self = static_cast<std::size_t>(net_->rank());
        all_->has_joined[self] = true;
        mine_->attempt({.name = "rounds", .step = 1}, [&]() -> testing::call_result {
            try {
                loop(*steps);
            } catch (const rill::error&) {
                all_->has_failed[self] = true;
                throw;
            }
            return {.is_exact = true};
        });
    }

  private:
    void loop(rounds_type& steps) {
        const std::size_t n = of_->size;
        std::vector<double> model(n + 1, 1.0), own(n), update(n, -1.0);
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.2}}.bind<double>(n);
        const rill::contribution weight{.weight =
                                            chosen_->leads_only && steps.is_root() ? 0.0 : 1.0 + net_->rank() % 3};
        double residual = 0;
        part latest{rill::no_rank, 0};
        while (true) {
            const std::uint64_t before = steps.number();
            const bool goes_on = steps.next(model);
            if (latest.second != 0) learn(steps, latest, residual, own, codec, !goes_on);
            if (!goes_on) break;
            if (steps.number() <= before) mine_->complain("a round is not newer than the one before");
            if (model != std::vector<double>(n + 1, static_cast<double>(steps.number())))
                mine_->complain("a state is of another round");
            come(static_cast<int>(steps.number()));
            for (std::size_t i = 0; i < n; ++i) own[i] = value(net_->rank(), steps.number(), i);
            latest = {net_->rank(), weight.weight == 0 ? 0 : steps.number()};
            if (latest.second != 0) all_->parts[latest];
            residual = sum_of(codec.residual());
            const rill::round_receipt r = chosen_->has_codec
                                              ? steps.reduce(own, update, codec, rill::aggregate::sum{}, weight)
                                              : steps.reduce(own, update, rill::aggregate::sum{}, weight);
            if (!steps.is_root()) continue;
            judge(r, steps.number(), update);
            model.assign(n + 1, static_cast<double>(steps.number() + 1));
            all_->rounds_done = steps.number();
            if (steps.number() >= chosen_->rounds) steps.end();
        }
    }

    void come(int step) {
        net_->sleep_until(net_->now() + testing::entry_delay(*of_, net_->rank(), step, *limits_));
        if (step > 0 && net_->rank() == 0) net_->sleep_until(net_->now() + chosen_->at_leisure);
        net_->compute(1);
    }

    /// Records what this rank is told about its latest contribution.
    template <class Codec>
    void learn(const rounds_type& steps, part latest, double before, const std::vector<double>& own, const Codec& codec,
               bool at_end) {
        ledger::made& it = all_->parts[latest];
        it.told = steps.was_in() ? ledger::fate::in : ledger::fate::out;
        it.at_end = at_end;
        if (!chosen_->has_codec) return;
        it.mass = before + sum_of(own) - sum_of(codec.residual());
        if (it.told == ledger::fate::out && it.mass != 0)
            mine_->complain("a contribution that is in no result has not come back");
    }

    /// At the root: checks that the result is what the receipt says.
    void judge(const rill::round_receipt& r, std::uint64_t round, const std::vector<double>& update) {
        std::vector<double> expected(update.size());
        double weight = 0;
        std::map<rill::rank_t, int> fresh_ones;
        for (const rill::contributor& each : r.in) {
            const part made{each.rank, round - each.age};
            if (!all_->parts.contains(made)) mine_->complain("a result has a contribution that nobody has made");
            ++all_->parts[made].in_results;
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += value(made.first, made.second, i);
            if (each.weight != 1.0 + each.rank % 3) mine_->complain("a receipt has another weight");
            weight += each.weight;
            complain_of_age(each);
        }
        if (r.weight != weight || r.contributors != static_cast<int>(r.in.size()) || r.operation_number != round)
            mine_->complain("a receipt does not agree with itself");
        if (chosen_->has_codec)
            all_->results_mass += sum_of(update);
        else if (update != expected)
            mine_->complain("a result is not the fold of what its receipt lists");
        const auto contributing = static_cast<std::size_t>(net_->size() - (chosen_->leads_only ? 1 : 0));
        if (std::holds_alternative<wait_all>(chosen_->enough.chosen) && r.in.size() != contributing)
            mine_->complain("a round that waits for all has not all");
    }
    void complain_of_age(const rill::contributor& each) {
        if (std::holds_alternative<fresh>(chosen_->age.chosen) && each.age != 0)
            mine_->complain("a result of fresh contributions has an old one");
        const auto* at_most = std::get_if<bounded>(&chosen_->age.chosen);
        if (at_most == nullptr) return;
        std::uint32_t edges = 0, oldest = 0;
        for (rill::rank_t r = each.rank; r != 0; r = chosen_->tree.parent(net_->size(), r))
            if (at_most->rounds > 0) oldest += ++edges * (at_most->rounds - 1) + 1;
        if (each.age > oldest) mine_->complain("a contribution is older than its bound");
    }

    rill::simulated::endpoint* net_;
    const testing::protocol_case* of_;
    const testing::protocol_limits* limits_;
    testing::rank_record* mine_;
    const choice* chosen_;
    ledger* all_;
};

// --- all ranks

/// Checks a run when it is over.
class judge {
  public:
    using end = testing::call_record::end;

    judge(const testing::protocol_case& of, const choice& chosen, const testing::run_record& seen, const ledger& all)
        : of_(&of), chosen_(&chosen), seen_(&seen), all_(&all) {}

    std::string verdict() const {
        if (!seen_->ended_by.empty()) return seen_->ended_by;
        for (rill::rank_t r = 0; r < of_->ranks; ++r) {
            if (!record(r).complaints.empty()) return told(r, record(r).complaints.front());
            if (std::string wrong = wrong_with(r); !wrong.empty()) return told(r, wrong);
        }
        for (const auto& [which, it] : all_->parts)
            if (std::string wrong = wrong_with(which, it); !wrong.empty())
                return told(which.first, wrong + " (round " + std::to_string(which.second) + ")");
        return wrong_with_mass();
    }

  private:
    const testing::rank_record& record(rill::rank_t r) const { return seen_->ranks[static_cast<std::size_t>(r)]; }
    static std::string told(rill::rank_t r, const std::string& what) {
        return "rank " + std::to_string(r) + ": " + what;
    }
    static bool is_of(const std::vector<bool>& ranks, rill::rank_t r) { return ranks[static_cast<std::size_t>(r)]; }

    bool anybody(const std::vector<bool>& ranks) const {
        return std::find(ranks.begin(), ranks.end(), true) != ranks.end();
    }
    bool have_all_joined() const {
        for (rill::rank_t r = 0; r < of_->ranks; ++r)
            if (!is_of(all_->has_joined, r) && !seen_->has_died(r)) return false;
        return true;
    }
    bool anything_was_lost() const {
        for (rill::rank_t r = 0; r < of_->ranks; ++r)
            if (seen_->has_died(r)) return true;
        return std::any_of(seen_->report.links.begin(), seen_->report.links.end(),
                           [](const auto& link) { return link.lost > 0; });
    }

    /// What is wrong with the calls of rank `r`. A rank that died need only end.
    std::string wrong_with(rill::rank_t r) const {
        if (seen_->has_died(r)) return {};
        for (const testing::call_record& call : record(r).calls) {
            if (call.came == end::wrong) return std::string(call.name) + " gave a wrong result";
            if (call.came != end::failed) continue;
            if (!seen_->has_suffered())
                return std::string(call.name) + " failed though nothing went wrong: " + call.said;
            const bool is_named = (call.culprit >= 0 && (seen_->has_died(call.culprit) || has_left(call.culprit))) ||
                                  seen_->has_failed_between(call.culprit, call.other);
            if (!is_named)
                return std::string(call.name) + " failed and names nobody who had to do with it: " + call.said;
            if (call.step == 1 && have_all_joined() && !anything_was_lost())
                return "rounds failed where nothing was lost: " + call.said;
            if (call.step == 1 && r == 0 && must_go_on())
                return "the root failed where it can do without those that are gone: " + call.said;
        }
        return {};
    }
    /// Whether rank `r` has given up, and thus left the rounds.
    bool has_left(rill::rank_t r) const {
        return std::any_of(record(r).calls.begin(), record(r).calls.end(),
                           [](const auto& call) { return call.came == end::failed; });
    }

    /// Whether the root must go on: one rank or one link has failed, and with it at most what one child of the root has
    /// gathered.
    bool must_go_on() const {
        if (!have_all_joined() || seen_->has_died(0)) return false;
        for (const rill::fault& f : of_->faults.faults)
            if (f.kind == rill::fault::what::loss) return false;
        return chosen_->does_without_one_of(chosen_->tree.children(of_->ranks, 0));
    }

    std::string wrong_with(const part& which, const ledger::made& it) const {
        if (it.in_results > 1) return "a contribution is in two results";
        if (it.told == ledger::fate::out && it.in_results != 0) return "is told that it is out, and is in a result";
        if (it.told == ledger::fate::in && it.in_results == 0 && !may_be_on_the_way(which))
            return "is told that it is in, and is in no result";
        const bool must_count = std::holds_alternative<bounded>(chosen_->age.chosen) && !it.at_end;
        if (it.told == ledger::fate::out && must_count) return "is told that it is out where nothing is dropped";
        return {};
    }
    /// Whether a contribution may have come late to a rank between its own rank and the root, and may not have been
    /// forwarded before that rank stopped or rounds ended.
    bool may_be_on_the_way(const part& which) const {
        if (std::holds_alternative<fresh>(chosen_->age.chosen)) return false;
        if (seen_->has_died(0) || is_of(all_->has_failed, 0)) return true;
        for (rill::rank_t r = chosen_->tree.parent(of_->ranks, which.first); r > 0;
             r = chosen_->tree.parent(of_->ranks, r)) {
            if (seen_->has_died(r) || is_of(all_->has_failed, r)) return true;
            const auto after = all_->parts.lower_bound({r + 1, 0});
            if (after == all_->parts.begin()) return true;
            const auto& [last, it] = *std::prev(after);
            if (last.first != r || it.in_results == 0) return true;
        }
        return false;
    }

    std::string wrong_with_mass() const {
        if (!chosen_->has_codec || all_->rounds_done == 0) return {};
        double mass = 0;
        for (const auto& [which, it] : all_->parts) {
            if (it.in_results != 0 && it.told != ledger::fate::in) return {};  // the rank did not ask for its fate
            if (it.in_results != 0) mass += it.mass;
        }
        return mass == all_->results_mass ? "" : "the results are not what was taken from the contributions";
    }

    const testing::protocol_case* of_;
    const choice* chosen_;
    const testing::run_record* seen_;
    const ledger* all_;
};

// --- the campaign

/// Limits under which the entry delays of a chain of 16 ranks add up to less than the timeout.
testing::protocol_limits limits_for(int least, int most) {
    return {.least_ranks = least, .most_ranks = most, .most_size = 200, .latest_entry = rill::milliseconds(300)};
}

/// Plays a case of a scene; returns what is wrong with it.
template <class Test>
std::string run(Test& test, const scene& of, const testing::protocol_case& drawn) {
    ledger all;
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& played, testing::rank_record& mine) {
        const choice chosen(of, played, test.limits());
        if (net.rank() == 0 && net.restarts() == 0) {
            all = {};
            all.has_joined.resize(static_cast<std::size_t>(played.ranks));
            all.has_failed.resize(static_cast<std::size_t>(played.ranks));
        }
        member(net, played, test.limits(), mine, chosen, all).play();
    };
    return test.run(drawn, on_one_rank, [&](const testing::protocol_case& played, const testing::run_record& seen) {
        const choice chosen(of, played, test.limits());
        return judge(played, chosen, seen, all).verdict();
    });
}

std::string name_of(const scene& of) {
    return "rounds: " + completion_names[of.completion] + " " + staleness_names[of.staleness] + " on " +
           tree_names[of.shape];
}

/// All runs of a scene.
std::string explore(const scene& of, testing::coverage& seen) {
    std::string wrong;
    for (int ranks = protocols::least_ranks; ranks <= protocols::most_ranks; ++ranks) {
        testing::protocol_test test(name_of(of), limits_for(ranks, ranks));
        const auto p = static_cast<std::size_t>(ranks - protocols::least_ranks);
        for (std::size_t kind = 0; kind < std::size(testing::every_fault_kind); ++kind)
            for (std::uint64_t i = 0; i < protocols::runs_of_each_cell; ++i) {
                const std::uint64_t seed =
                    protocols::first_seed +
                    rill::mix64(of.completion, of.staleness, of.shape, p, kind, i) % 1'000'000'000;
                if (seed % protocols::one_in != 0) continue;
                const std::string report =
                    run(test, of, testing::draw_case(testing::every_fault_kind[kind], seed, test.limits()));
                seen.count({of.completion, of.staleness, of.shape, kind, p}, test.last().any_call_failed());
                if (!report.empty() && wrong.size() < 20'000) wrong += report;
            }
    }
    return wrong;
}

}  // namespace

TEST_CASE("rounds go on or name the fault; each rank is told correctly whether its contribution was used") {
    testing::coverage seen({{"completion", completion_names},
                            {"staleness", staleness_names},
                            {"tree", tree_names},
                            {"fault", protocols::fault_names()},
                            {"ranks", protocols::rank_names()}});
    for (std::size_t completion = 0; completion < completion_names.size(); ++completion)
        for (std::size_t staleness = 0; staleness < staleness_names.size(); ++staleness)
            for (std::size_t shape = 0; shape < tree_names.size(); ++shape)
                CHECK(explore({completion, staleness, shape}, seen) == "");
    if (testing::protocol_test::is_replay()) return;
    MESSAGE(seen.runs() << " runs, of them with a failed call:\n"
                        << seen.table(0, 3) << "\n"
                        << seen.table(1, 3) << "\n"
                        << seen.table(2, 3));
    if (protocols::one_in == 1) CHECK(seen.never_run() == "");
}

TEST_CASE("rounds: failures that the campaign has found stay fixed") {
    struct found {
        scene of;
        const char* what;
    };
    // These cases found a bug: a rank with children waited for a contribution that must not be dropped; by the rounds
    // that the rank itself had missed, the contribution became older than the bound and was dropped.
    const found all_found[] = {
        {{2, 1, 2}, "run 625686544 ranks 3 size 0: seed 0"},
        {{2, 1, 1}, "run 682028951 ranks 4 size 0: seed 0"},
        {{1, 1, 1}, "run 748164395 ranks 8 size 0 plain: seed 0"},
        // The root failed, and then told its children that their contributions were in.
        {{0, 0, 0}, "run 742235184 ranks 12 size 0: seed 0; lose 0.015625"},
        {{0, 0, 1}, "run 673733572 ranks 12 size 0: seed 0; lose 0.03125"},
        // The group of a rank that had begun anew was taken for the one in which the others had agreed.
        {{2, 1, 2}, "run 686729036 ranks 4 size 0 plain: seed 0; kill rank 2 after 2; restart rank 2"},
    };
    for (const found& each : all_found) {
        testing::protocol_test test("found", limits_for(protocols::least_ranks, protocols::most_ranks));
        CHECK(run(test, each.of, testing::parse_protocol_case(each.what)) == "");
    }
}
