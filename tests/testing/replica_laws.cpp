#include <rill/testing/replica_laws.hpp>

#include <rill/protocol/pair_averaging.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/grouped_replica.hpp>
#include <rill/train/local_replica.hpp>
#include <rill/train/partial_replica.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/server_replica.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace rill::straggler;

namespace lawful {

const train::descent move{train::sgd{.momentum = 0.5}, train::constant_rate{0.125}};
const train::descent average{train::sgd{}, train::constant_rate{1}, false};

/// Pairs of ranks, as a plan.
template <class Who>
struct pairs {
    Who who{};

    template <std::floating_point T, class Net>
    pair_averaging<Net, T, Who, train::descent<>> bind(Net& net, std::span<const T> first,
                                                       const group_options& options = {}) const {
        return {net, who, train::descent{train::sgd{}, train::constant_rate{0.125}}, first, options};
    }
};

/// Even and odd ranks in groups that share a model, as a plan.
struct two_groups {
    template <std::floating_point T, class Net>
    auto bind(Net& net, std::span<const T> first, const group_options& options = {}) const {
        train::grouping groups{.every = 2};
        for (rank_t rank = net.rank() % 2; rank < net.size(); rank += 2) groups.alike.members.push_back(rank);
        const train::partial_replica within{topology::ring{}, two_choices{1}, bounded{4}, plain_sum{}, move};
        return train::grouped_replica{within, groups}.template bind<T>(net, first, options);
    }
};

template <class Plan>
auto made_by(const Plan& plan) {
    return [plan](auto& net, const std::vector<double>& first) {
        return plan.template bind<double>(net, std::span<const double>(first));
    };
}

template <class Plan>
void check(const Plan& plan, const testing::replica_trials& trials = {}) {
    int laws = 0;
    testing::for_each_replica_law(
        made_by(plan),
        [&](const char* name, const testing::law_outcome& outcome) {
            CAPTURE(name);
            CAPTURE(outcome.what);
            CHECK(outcome.held);
            ++laws;
        },
        trials);
    CHECK(laws == 8);
}

template <class Start, class Age, class Sum>
auto rounds(Start start, Age age, Sum sum) {
    return train::partial_replica{topology::ring{}, start, age, sum, move};
}

}  // namespace lawful

using namespace lawful;

TEST_CASE("replica_laws: partial_all_reduce keeps them") {
    check(rounds(solo{}, bounded{2}, linear_mean{}));
    check(rounds(majority{}, in_step{}, plain_sum{}));
    check(rounds(two_choices{2}, unbounded{}, linear_mean{}), {.ranks = {2, 3, 5}});
    check(rounds(all_ready{}, in_step{}, plain_sum{}));
}

TEST_CASE("replica_laws: parameter_server keeps them") {
    const auto with = [](const auto& age) {
        for (const int servers : {1, 2})
            check(train::server_replica{server_options{.servers = servers}, age, move},
                  {.ranks = {servers + 1, 5}, .serving = servers});
        check(train::server_replica{server_options{.dedicated = false}, age, move});
        check(train::server_replica{server_options{.servers = 3, .dedicated = false}, age, move}, {.ranks = {3, 5}});
    };
    with(bounded{0});
    with(bounded{3});
    with(unbounded{});
}

TEST_CASE("replica_laws: groups that share a model keep them") { check(two_groups{}); }

TEST_CASE("replica_laws: pair_averaging keeps them") {
    check(pairs<topology::bipartite>{});
    check(pairs<topology::anyone>{});
}

TEST_CASE("replica_laws: local_steps keep them over each replica") {
    const auto over = [](const auto& outer, const testing::replica_trials& trials = {}) {
        for (const std::uint32_t every : {1U, 3U}) check(train::local_replica{outer, {every}, move}, trials);
    };
    over(train::partial_replica{topology::ring{}, all_ready{}, in_step{}, plain_sum{}, average});
    over(train::partial_replica{topology::ring{}, majority{}, bounded{4}, plain_sum{}, average});
    over(train::server_replica{server_options{}, bounded{2}, average}, {.ranks = {2, 5}, .serving = 1});
    over(pairs<topology::anyone>{});
}

namespace unlawful {

enum class fault {
    none,
    fate_told_twice,
    fate_never_told,
    fate_of_no_push,
    goes_on_after_the_end,
    goes_on_after_retire,
    waits_for_ever,
    comes_back,
    falls_back,
    takes_anything,
    sends_first,
    counts_nan,
    names_another_coordinate,
    ends_at_nan,
    remembers_other_runs
};

/// A lawful replica, and one fault.
template <class Net, class Inner>
class faulty_replica {
  public:
    template <class Plan>
    faulty_replica(Net& net, const Plan& plan, const std::vector<double>& first, fault broken)
        : net_(net), inner_(plan.template bind<double>(net, std::span<const double>(first))), broken_(broken) {}

    std::optional<held_version> pull(std::vector<double>& model) {
        const auto held = inner_.pull(model);
        if (broken_ == fault::remembers_other_runs && held) model[0] += runs() / 1024.0;
        if (broken_ == fault::goes_on_after_retire && has_retired_) return held_version{last_};
        if (held) {
            last_ = held->version;
            if (broken_ == fault::falls_back && last_ % 5 == 4) return held_version{last_ - 2};
            return held;
        }
        const bool was_over = std::exchange(is_over_, true);
        if (broken_ == fault::goes_on_after_the_end || (broken_ == fault::comes_back && was_over))
            return held_version{last_};
        if (broken_ == fault::waits_for_ever && net_.rank() == 0) typename Net::event(net_).wait(deadline::never);
        return std::nullopt;
    }
    void push(const std::vector<double>& gradient, const held_version& held) {
        std::vector<double> own = gradient;
        const bool is_nan = spoilt(own);
        if (broken_ == fault::counts_nan && is_nan) std::fill(own.begin(), own.end(), 0.0);
        if (broken_ == fault::ends_at_nan && is_nan) inner_.end();
        if (broken_ == fault::sends_first) net_.post(net_.rank(), {.context = 77}, buffer(1));
        try {
            inner_.push(own, broken_ == fault::falls_back ? held_version{last_} : held);
        } catch (const contract_violation&) {
            if (broken_ != fault::takes_anything) throw;
        }
    }
    std::optional<push_fate> fate() {
        if (repeated_) return std::exchange(repeated_, std::nullopt);
        auto told = inner_.fate();
        if (told && broken_ == fault::fate_never_told && told->push == 1) told = inner_.fate();
        if (told && broken_ == fault::fate_told_twice && told->push == 1) repeated_ = told;
        if (told && broken_ == fault::fate_of_no_push) told->push += 1;
        if (told && broken_ == fault::names_another_coordinate) told->coordinate ^= 1;
        return told;
    }
    void retire() {
        has_retired_ = true;
        inner_.retire();
    }
    void end() { inner_.end(); }

  private:
    static bool spoilt(const std::vector<double>& values) {
        for (const double value : values)
            if (value - value != 0) return true;
        return false;
    }
    static double runs() {
        static int count = 0;
        return ++count;
    }

    Net& net_;
    Inner inner_;
    fault broken_;
    std::uint64_t last_ = 0;
    bool is_over_ = false;

    bool has_retired_ = false;
    std::optional<push_fate> repeated_;
};

/// The laws that a replica with this fault breaks.
std::set<std::string> broken_by(fault broken) {
    const auto plan = rounds(majority{}, bounded{8}, plain_sum{});
    using net_type = simulated::endpoint;
    using inner = decltype(plan.template bind<double>(std::declval<net_type&>(), std::span<const double>()));
    std::set<std::string> laws;
    testing::for_each_replica_law(
        [&](net_type& net, const std::vector<double>& first) {
            return faulty_replica<net_type, inner>(net, plan, first, broken);
        },
        [&](const char* name, const testing::law_outcome& outcome) {
            if (!outcome.held) laws.insert(name);
        },
        {.ranks = {1, 3}, .seeds = 3});
    return laws;
}

}  // namespace unlawful

TEST_CASE("replica_laws: each finds what it is there for") {
    using unlawful::fault;
    const std::string retired = "once all have retired, pull returns nothing on all ranks",
                      ended = "once one has ended the run, pull returns nothing on all ranks",
                      fate_retired = "each push has one fate, where all retire",
                      fate_ended = "each push has one fate, where one ends the run", versions = "versions do not fall",
                      misuse = "what is not allowed is refused with nothing sent, and the run goes on",
                      spoilt = "what is not finite is refused with its coordinate, and its rank goes on",
                      bits = "the same run gives the same bits";
    const auto breaks = [](fault broken, const std::set<std::string>& laws) {
        const auto found = unlawful::broken_by(broken);
        CAPTURE(int(broken));
        for (const std::string& law : laws) CHECK_MESSAGE(found.count(law) == 1, "not found: ", law);
        for (const std::string& law : found) CHECK_MESSAGE(laws.count(law) == 1, "found: ", law);
    };
    const std::set<std::string> fates{fate_retired, fate_ended, misuse},
        every{retired, ended, fate_retired, fate_ended, versions, misuse, spoilt, bits};
    breaks(fault::none, {});
    breaks(fault::fate_told_twice, fates);
    breaks(fault::fate_never_told, fates);
    breaks(fault::fate_of_no_push, {fate_retired, fate_ended, misuse, spoilt});
    breaks(fault::goes_on_after_the_end, every);
    breaks(fault::goes_on_after_retire, {retired, fate_retired, misuse, spoilt});
    breaks(fault::waits_for_ever, every);
    breaks(fault::comes_back, every);
    breaks(fault::falls_back, {versions, misuse});  // a later version has been pulled
    breaks(fault::takes_anything, {misuse});
    breaks(fault::sends_first, {misuse});
    breaks(fault::counts_nan, {spoilt});
    breaks(fault::names_another_coordinate, {spoilt});
    breaks(fault::ends_at_nan, {spoilt});
    breaks(fault::remembers_other_runs, {bits});
}
