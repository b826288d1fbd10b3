// What a rank still has after another has failed, which has ended the run: its model, its version, the fates of its
// pushes, and a state that can be saved. And a run whose restore was refused cannot begin.
#include "../support/scratch.hpp"

#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/replica.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int ranks = 4;
constexpr rill::rank_t guilty = 2;
constexpr std::uint64_t steps = 5;
using vector = std::vector<double>;

/// An update that throws when it is applied for the time number `when`.
struct breaking {
    using fold_type = rill::aggregate::mean;
    std::uint64_t when = 0;

    struct bound {
        std::uint64_t left;
        void apply(std::span<double>, std::span<const double>, double, std::uint64_t) {
            if (left-- == 0) throw std::out_of_range("an update that fails");
        }
    };
    template <class T>
    bound bind(std::size_t) const {
        return {when};
    }
};

/// The body of the guilty rank throws in its step number `when`.
struct rounds {
    static constexpr bool throws_in_body = true;

    template <class Net, class Use>
    void operator()(Net& net, const vector& first, std::uint64_t, Use&& use) const {
        rill::group workers{net, rill::topology::ring{}};
        rill::partial_all_reduce replica{workers,
                                         rill::straggler::all_ready{},
                                         rill::straggler::in_step{},
                                         rill::straggler::plain_sum{},
                                         rill::aggregate::add{},
                                         first};
        use(replica);
    }
};
/// The update of the guilty rank throws.
struct pairs {
    static constexpr bool throws_in_body = false;

    template <class Net, class Use>
    void operator()(Net& net, const vector& first, std::uint64_t when, Use&& use) const {
        rill::pair_averaging replica{net, rill::topology::bipartite{},
                                     breaking{net.rank() == guilty ? when : ~std::uint64_t{0}}, first};
        use(replica);
    }
};

/// After the failure: what the rank looks at answers, and answers alike each time.
template <class Replica>
void look_at(Replica& replica, std::uint64_t pushes, const rill::held_version& held, const scratch_directory& to,
             rill::rank_t rank) {
    vector model(3, -1);
    CHECK_THROWS_AS(replica.pull(model), rill::peer_failure);
    CHECK(model == vector(3, -1));
    const vector newest(replica.newest().begin(), replica.newest().end());
    CHECK(newest.size() == 3);
    CHECK(replica.version() >= held.version);

    replica.push(vector(3, 1), held);  // counts nothing, and is told
    std::set<std::uint64_t> told;
    std::uint64_t counted = 0;
    while (const auto fate = replica.fate()) {
        CHECK(told.insert(fate->push).second);
        counted += fate->what == rill::push_fate::outcome::counted ? 1 : 0;
        if (fate->push == pushes) CHECK(fate->what == rill::push_fate::outcome::run_over);
    }
    CHECK(told.size() == pushes + 1);
    CHECK(counted <= pushes);

    const std::string file = to / std::to_string(rank).c_str();
    rill::train::checkpoint::writer out;
    replica.save(out, "");
    out.save(file);
    vector saved(3);
    rill::train::checkpoint::load(file).read("model", saved);
    CHECK(saved == newest);
    CHECK(vector(replica.newest().begin(), replica.newest().end()) == newest);
}

/// Rank `guilty` fails in its step number `when`; all others look at their replicas afterwards.
template <class Make, class Net>
void throws_in_step(Net& net, Make make, std::uint64_t when, const scratch_directory& to, std::atomic<int>& looked,
                    std::atomic<int>& made) {
    make(net, vector(3), when, [&](auto& replica) {
        ++made;
        vector model(3);
        std::uint64_t pushes = 0;
        rill::held_version held{};
        try {
            while (const auto next = replica.pull(model)) {
                held = *next;
                if (Make::throws_in_body && net.rank() == guilty && pushes == when)
                    throw std::out_of_range("a body that fails");
                replica.push(vector(3, 1), held);
                ++pushes;
            }
        } catch (const rill::error&) {
            look_at(replica, pushes, held, to, net.rank());
            ++looked;
            throw;
        }
    });
}

template <class Run, class Make>
void fails_everywhere(Run run, Make make) {
    for (std::uint64_t when = 0; when < steps; ++when) {
        CAPTURE(when);
        const scratch_directory to;
        std::atomic<int> looked{0}, made{0};
        CHECK_THROWS_AS(run([&](auto& net) { throws_in_step(net, make, when, to, looked, made); }), std::out_of_range);
        CHECK(looked == made - 1);
    }
}

const auto simulated = [](auto body) { rill::simulated::run(ranks, {}, body); };
const auto threads = [](auto body) { rill::in_process::run(ranks, body); };

/// The state of a rank that has run once, if it fits.
struct saved_by {
    rill::rank_t rank;
    bool fits;

    void read(const std::string& what, std::span<std::uint64_t> numbers) const {
        if (!fits) throw std::runtime_error("no entry " + what);
        std::fill(numbers.begin(), numbers.end(), 0U);
        if (numbers.size() != 5) return;
        numbers[0] = static_cast<std::uint64_t>(rank);
        numbers[1] = ranks;
        numbers[4] = 1;
    }
    static void read(const std::string&, std::span<double> values) { std::fill(values.begin(), values.end(), 0.0); }
    static std::size_t count(const std::string&) { return 3; }
};

/// A state of one rank that does not fit refuses the restore of all, and no rank's run begins.
template <class Make>
void refuses_to_begin(Make make) {
    rill::simulated::run(ranks, {}, [&](rill::simulated::endpoint& net) {
        make(net, vector(3), steps, [&](auto& replica) {
            CHECK_THROWS(replica.restore(saved_by{net.rank(), net.rank() != guilty}, ""));
            vector model(3, -1);
            if (net.rank() == guilty)
                CHECK_THROWS_WITH_AS(replica.pull(model), doctest::Contains("no entry"), std::runtime_error);
            else
                CHECK_THROWS_AS(replica.pull(model), rill::peer_failure);
            CHECK(model == vector(3, -1));
        });
    });
}

struct failing {
    using fold_type = rill::aggregate::sum;
    static constexpr const char* name = "failing";

    template <class T>
    failing bind(std::size_t) const {
        return {};
    }
    static void apply(std::span<double>, std::span<const double>, double, std::uint64_t) {
        throw std::range_error("an update that fails");
    }
};

}  // namespace

TEST_CASE("after failure: what a partial_all_reduce has can be read and saved") {
    SUBCASE("simulated") { fails_everywhere(simulated, rounds{}); }
    SUBCASE("threads") { fails_everywhere(threads, rounds{}); }
}

TEST_CASE("after failure: what a pair_averaging has can be read and saved") {
    SUBCASE("simulated") { fails_everywhere(simulated, pairs{}); }
    SUBCASE("threads") { fails_everywhere(threads, pairs{}); }
}

TEST_CASE("after failure: a refused restore lets no run begin") {
    SUBCASE("rounds") { refuses_to_begin(rounds{}); }
    SUBCASE("pairs") { refuses_to_begin(pairs{}); }
}

TEST_CASE("pair_averaging: a push whose update throws is told") {
    rill::simulated::run(2, {}, [](rill::simulated::endpoint& net) {
        rill::pair_averaging replica{net, rill::topology::bipartite{}, failing{}, vector(3)};
        vector model(3);
        const auto held = replica.pull(model);
        REQUIRE(held);
        if (net.rank() == 0) replica.push(vector(3, 1), *held);
        net.sleep_until(net.now() + rill::milliseconds(1));
        CHECK_THROWS_AS(replica.pull(model), std::exception);
        const auto fate = replica.fate();
        CHECK(fate.has_value() == (net.rank() == 0));
        if (fate) CHECK(fate->what == rill::push_fate::outcome::run_over);
        CHECK(!replica.fate());
    });
}
