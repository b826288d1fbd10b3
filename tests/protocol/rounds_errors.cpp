// Failures of rounds, and which ranks learn of them.
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "../collective/cases.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::star;
using rill::topology::tree;
using namespace rill::straggler;
using numbers = std::vector<std::int64_t>;

namespace folds {

/// A sum that throws at the value 13.
struct superstitious_sum {
    static constexpr const char* name = "superstitious_sum";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;
    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static T fold(T a, T b) {
        if (a == 13 || b == 13) throw std::runtime_error("not with me");
        return a + b;
    }
    template <class T>
    static void finish(std::span<T>, double) {}
    friend bool operator==(superstitious_sum, superstitious_sum) = default;
};

}  // namespace folds

namespace {

struct outcome {
    std::string said;
    rill::rank_t culprit = -7;
};

/// The error that each of `ranks` ranks got from `body(workers)`.
template <class Body>
std::vector<outcome> errors_of(int ranks, Body&& body) {
    std::vector<outcome> seen(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, {.longest = rill::seconds(1000)}, [&](endpoint& net) {
        outcome& mine = seen[static_cast<std::size_t>(net.rank())];
        rill::group workers{net, star{}};
        try {
            body(workers);
        } catch (const rill::error& e) {
            mine = {e.what(), e.culprit()};
        } catch (const std::exception& e) {
            mine = {std::string("own: ") + e.what(), net.rank()};
        }
    });
    return seen;
}

void check_all(const std::vector<outcome>& seen, const outcome& expected) {
    for (const outcome& each : seen) {
        CHECK(each.said == expected.said);
        CHECK(each.culprit == expected.culprit);
    }
}

}  // namespace

TEST_CASE("rounds: a rank with other arguments is named on all ranks") {
    const auto one_round = [](auto& workers, std::size_t size, const auto& fold) {
        rill::rounds steps{workers, tree{2}};
        numbers model(3), own(size, 1), update(size);
        while (steps.next(model)) steps.reduce(own, update, fold);
    };
    check_all(
        errors_of(5, [&](auto& workers) { one_round(workers, workers.rank() == 4 ? 9 : 8, rill::aggregate::sum{}); }),
        {"rill: round 1: rank 4 contributes 9 elements of int64, rank 3 8 of int64", 4});
    check_all(errors_of(4,
                        [&](auto& workers) {
                            if (workers.rank() == 2)
                                one_round(workers, 8, rill::aggregate::max{});
                            else
                                one_round(workers, 8, rill::aggregate::sum{});
                        }),
              {"rill: round 1: rank 2 contributes with another aggregator than rank 1", 2});
    check_all(errors_of(4,
                        [&](auto& workers) {
                            if (workers.rank() == 2)
                                one_round(workers, 9, rill::aggregate::max{});
                            else
                                one_round(workers, 8, rill::aggregate::sum{});
                        }),
              {"rill: round 1: rank 2 contributes 9 elements of int64, rank 1 8 of int64, with another aggregator", 2});
    const auto of_another_coding = errors_of(2, [](auto& workers) {
        rill::rounds steps{workers, star{}};
        auto plain = rill::compress::top_k{.density = 0.5}.bind(4);
        auto rounding = rill::compress::encoded{rill::compress::top_k{.density = 0.5}, rill::compress::bf16{}}.bind(4);
        std::vector<float> model(4), update(4);
        const std::vector<float> own{1, 2, 3, 4};
        while (steps.next(model))
            workers.rank() == 1 ? steps.reduce(own, update, rounding) : steps.reduce(own, update, plain);
    });
    check_all(of_another_coding, {"rill: round 1: rank 1 contributes with another coding than rank 0", 1});
    check_all(errors_of(4,
                        [](auto& workers) {
                            rill::rounds steps{workers, star{}};
                            std::vector<std::int64_t> model(workers.rank() == 3 ? 4 : 5), update(2);
                            steps.next(model);
                            steps.reduce(numbers(2), update);
                            steps.next(model);
                        }),
              {"rill: round 1: rank 3 takes a state of 4 elements of int64 where the root gives 5 of int64", 3});
    const auto of_another_type = errors_of(4, [](auto& workers) {
        rill::rounds steps{workers, star{}};
        std::vector<double> doubles(5);
        std::vector<float> floats(5);
        std::vector<std::int64_t> update(2);
        const auto next = [&] { return workers.rank() == 3 ? steps.next(floats) : steps.next(doubles); };
        next();
        steps.reduce(numbers(2), update);
        next();
    });
    check_all(of_another_type,
              {"rill: round 1: rank 3 takes a state of 5 elements of float32 where the root gives 5 of float64", 3});
    const auto of_another_policy = errors_of(4, [](auto& workers) {
        rill::rounds steps{workers, star{}, tolerate{workers.rank() == 2 ? 1 : 2}};
    });
    for (const outcome& each : of_another_policy) CHECK(each.culprit == 2);
}

TEST_CASE("rounds: a timeout names the rank where the waiting begins") {
    // A chain with a sleeping rank at its end.
    const auto seen = errors_of(5, [](auto& workers) {
        rill::rounds steps{workers, tree{1}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            if (workers.rank() == 4) workers.net().sleep_until(workers.net().now() + rill::seconds(200));
            steps.reduce(numbers(3), update);
        }
    });
    for (rill::rank_t r = 0; r < 5; ++r) {
        CAPTURE(seen[static_cast<std::size_t>(r)].said);
        CHECK(seen[static_cast<std::size_t>(r)].culprit == 4);
        CHECK(seen[static_cast<std::size_t>(r)].said.find(" s for rank 4") != std::string::npos);
    }
    // Two ranks sleep one after the other: the error names the second one, for which the others wait in the end.
    const auto in_turn = errors_of(3, [](auto& workers) {
        rill::rounds steps{workers, star{}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            const std::int64_t of_timeout = workers.rank() == 1 ? 3 : workers.rank() == 2 ? 20 : 0;
            workers.net().sleep_until(workers.net().now() + workers.options().timeout * of_timeout / 4);
            steps.reduce(numbers(3), update);
        }
    });
    for (const outcome& each : in_turn) CHECK(each.culprit == 2);
}

TEST_CASE("rounds: a call that belongs to no round changes nothing") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        rill::group workers{net, star{}};
        numbers model(3), update(3);
        rill::rounds steps{workers, star{}};
        REQUIRE(steps.next(model));
        if (!steps.is_root()) CHECK_THROWS_AS(steps.end(), rill::contract_violation);
        steps.reduce(numbers(3), update);
        if (steps.is_root()) steps.end();
        CHECK(!steps.next(model));
        CHECK(!steps.next(model));
        CHECK_THROWS_AS(steps.reduce(numbers(3), update), rill::contract_violation);
        CHECK(!steps.next(model));
    });
}

TEST_CASE("rounds: a broken contract on one rank ends the rounds of all, and names it") {
    struct unweighable {
        operator rill::contribution() const { throw std::runtime_error("no scales"); }
    };
    // A call that rank `who` makes in round 2 before its own `reduce`.
    const auto by = [](rill::rank_t who, auto&& broken, const std::string& expected) {
        CAPTURE(expected);
        const auto seen = errors_of(4, [&](auto& workers) {
            rill::rounds steps{workers, tree{2}, tolerate{1}};
            numbers model(3), update(3);
            while (steps.next(model)) {
                if (workers.rank() == who && steps.number() == 2) broken(steps, update);
                steps.reduce(numbers(3), update);
                workers.net().sleep_until(workers.net().now() + rill::milliseconds(1));
            }
        });
        for (const outcome& each : seen) {
            CHECK(each.culprit == who);
            CHECK(each.said.find(expected) != std::string::npos);
            CHECK(each.said.find("waited") == std::string::npos);
        }
    };
    const double nan = std::nan("");
    for (const rill::rank_t who : {0, 1, 3}) {
        for (const double weight : {-1.0, nan, 1.1e28, HUGE_VAL})
            by(
                who, [&](auto& steps, auto& out) { steps.reduce(numbers(3), out, rill::aggregate::sum{}, {weight}); },
                "a contribution's weight is a number from 0 to 1e28");
        by(
            who, [](auto& steps, auto& out) { steps.reduce(numbers(3), out, rill::aggregate::sum{}, unweighable{}); },
            "no scales");
        by(
            who, [](auto& steps, auto& out) { steps.reduce(numbers(3), out); }, "reduce is called once in each round");
        by(
            who,
            [](auto& steps, auto&) {
                numbers more(3);
                steps.next(more);
            },
            "call reduce once in each round");
    }
    by(
        0, [](auto& steps, auto& out) { steps.reduce(numbers(2), out); }, "input and output must be of one size");
    const auto before = errors_of(4, [](auto& workers) {
        rill::rounds steps{workers, star{}};
        numbers model(3), update(3);
        if (workers.rank() == 2) steps.reduce(numbers(3), update);
        while (steps.next(model)) steps.reduce(numbers(3), update);
    });
    for (const outcome& each : before) CHECK(each.culprit == 2);
}

TEST_CASE("rounds: a second reduce leaves what became of the first to be told") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 1}}.bind(4);
        std::vector<float> model(4), update(4);
        REQUIRE(steps.next(model));
        steps.reduce(std::vector<float>{1, 2, 3, 4}, update, codec);
        net.sleep_until(net.now() + rill::milliseconds(1));
        CHECK_THROWS(steps.reduce(std::vector<float>{1, 2, 3, 4}, update, codec));
        CHECK(steps.was_in() == steps.is_root());
        CHECK(codec.residual()[3] == (steps.is_root() ? 0.0F : 4.0F));
    });
}

TEST_CASE("rounds: a contribution of wrong size that nobody waits for is dropped unread") {
    const auto seen = errors_of(4, [](auto& workers) {
        rill::rounds steps{workers, star{}, tolerate{1}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            const bool is_wrong = workers.rank() == 2 && steps.number() == 2;
            workers.net().sleep_until(workers.net().now() + rill::milliseconds(is_wrong ? 5 : 1));
            steps.reduce(numbers(is_wrong ? 4 : 3), update);
            if (steps.is_root() && steps.number() == 9) steps.end();
        }
    });
    check_all(seen, outcome{});
}

TEST_CASE("rounds: a failure of one rank ends the rounds of all ranks, and names it") {
    const auto seen = errors_of(5, [](auto& workers) {
        rill::rounds steps{workers, tree{2}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            const std::int64_t value = workers.rank() == 2 && steps.number() == 3 ? 13 : 1;
            workers.net().sleep_until(workers.net().now() + rill::milliseconds(1));
            steps.reduce(numbers(3, value), update, folds::superstitious_sum{});
        }
    });
    CHECK(seen[1].said == "own: not with me");
    for (const std::size_t r : {0U, 2U, 3U, 4U}) {
        CHECK(seen[r].said == "rill: round 3: rank 1: not with me");
        CHECK(seen[r].culprit == 1);
    }
    // Between two calls: an exception that unwinds past the root's rounds ends them for all ranks.
    const auto by_root = errors_of(4, [](auto& workers) {
        rill::rounds steps{workers, star{}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            if (steps.is_root() && steps.number() == 2) throw std::runtime_error("enough");
            steps.reduce(numbers(3), update);
        }
    });
    for (const std::size_t r : {1U, 2U, 3U}) {
        CHECK(by_root[r].said == "rill: round 2: rank 0: an exception has passed through its rounds");
        CHECK(by_root[r].culprit == 0);
    }
    // A rank gives up when it misses more than it can do without, and does not disturb the others: rank 3 never comes.
    rill::round_receipt last;
    const auto by_parent = errors_of(4, [&](auto& workers) {
        rill::rounds steps{workers, tree{2}, fastest{1}, unbounded{}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            const auto more = workers.options().timeout * (workers.rank() == 2 ? 30 : 3) / 10;
            if (workers.rank() % 2 == 0) workers.net().sleep_until(workers.net().now() + more);
            const auto r = steps.reduce(numbers(3), update);
            if (steps.is_root()) last = r;
            if (steps.is_root() && steps.number() == 9) steps.end();
        }
    });
    CHECK(by_parent[0].said.empty());
    CHECK(by_parent[1].culprit == 2);
    CHECK(by_parent[3].said.empty());
    CHECK(last.operation_number == 9);
    // An exception that unwinds past another rank's rounds ends only these, as long as the others can do without it.
    std::uint64_t rounds = 0;
    const auto by_worker = errors_of(4, [&](auto& workers) {
        rill::rounds steps{workers, star{}, tolerate{1}};
        numbers model(3), update(3);
        while (steps.next(model)) {
            if (workers.rank() == 2 && steps.number() == 2) throw std::runtime_error("enough");
            const auto r = steps.reduce(numbers(3), update);
            rounds = steps.number();
            if (steps.is_root() && steps.number() == 5) steps.end();
        }
    });
    CHECK(rounds == 5);
    CHECK(by_worker[2].said == "own: enough");
    for (const std::size_t r : {0U, 1U, 3U}) CHECK(by_worker[r].said.empty());
}

TEST_CASE("rounds: where a rank dies while the others agree on the rounds, the root names it to all") {
    std::vector<rill::rank_t> blamed(4, -7);
    rill::simulated::run(4, {.faults = {{rill::faults::kill(1).after(3)}}}, [&](endpoint& net) {
        try {
            rill::group workers{net, star{}, {.timeout = rill::milliseconds(20)}};
            rill::rounds steps{workers, star{}, wait_all{}};
            std::vector<float> state(2), own(2), sum(2);
            while (steps.next(state)) {
                if (!steps.is_root()) net.sleep_until(net.now() + rill::milliseconds(8));
                steps.reduce(own, sum);
            }
        } catch (const rill::error& failed) {
            blamed[static_cast<std::size_t>(net.rank())] = failed.culprit();
        }
    });
    CHECK(blamed == std::vector<rill::rank_t>{1, -7, 1, 1});
}

TEST_CASE("rounds: a contribution whose reduce has thrown was not in") {
    for (const rill::rank_t who : {0, 1, 2}) {
        rill::simulated::run(4, {.longest = rill::seconds(1000)}, [&](endpoint& net) {
            rill::group workers{net, star{}};
            rill::rounds steps{workers, tree{2}};
            CHECK(!steps.was_in());
            numbers model(3), update(3);
            std::uint64_t was_in = 0;
            const auto all_rounds = [&] {
                while (steps.next(model)) {
                    was_in += steps.was_in() ? 1 : 0;
                    const std::int64_t value = net.rank() == who && steps.number() == 3 ? 13 : 1;
                    steps.reduce(numbers(3, value), update, folds::superstitious_sum{});
                    CHECK(steps.was_in() == steps.is_root());
                }
            };
            CHECK_THROWS(all_rounds());
            CHECK(was_in == 2);
            CHECK(!steps.was_in());
        });
    }
}

TEST_CASE("rounds: a contribution of the root that has timed out was not in, and is in the residual again") {
    rill::simulated::run(3, {.longest = rill::seconds(1000)}, [](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.5}}.bind(4);
        std::vector<float> model(4), update(4);
        const std::vector<float> own{1, 2, 3, 4};
        REQUIRE(steps.next(model));
        if (net.rank() == 1) return net.sleep_until(net.now() + rill::seconds(200));
        CHECK_THROWS([&] {
            steps.reduce(own, update, codec);
            steps.next(model);
        }());
        CHECK(!steps.was_in());
        CHECK(std::vector<float>(codec.residual().begin(), codec.residual().end()) == own);
    });
}

TEST_CASE("rounds: an exception that leaves a body ends all threads") {
    for (const int who : {0, 2}) {
        std::vector<std::string> said(4);
        CHECK_THROWS_WITH(rill::in_process::run(4,
                                                [&](auto& net) {
                                                    rill::group workers{net, star{}};
                                                    rill::rounds steps{workers, star{}, fastest{2}};
                                                    numbers model(3), update(3);
                                                    while (steps.next(model)) {
                                                        if (net.rank() == who && steps.number() > 3)
                                                            throw std::runtime_error("enough");
                                                        steps.reduce(numbers(3), update);
                                                    }
                                                }),
                          "enough");
    }
}

TEST_CASE("rounds: messages larger than a mailbox") {
    // Messages of 800 bytes where a mailbox has room for 500; ranks with children get late ones while they wait for
    // states.
    for (const int arity : {1, 2, 5})
        for (const std::size_t room : {500U, 900U, 1700U}) {
            std::vector<std::uint64_t> rounds(6);
            rill::simulated::run(6,
                                 {.computing = [](rill::rank_t rank, std::uint64_t,
                                                  double) { return rill::milliseconds(rank % 3 == 2 ? 50 : 3); },
                                  .mailbox_bytes = room,
                                  .longest = rill::seconds(1000)},
                                 [&](endpoint& net) {
                                     rill::group workers{net, star{}};
                                     rill::rounds steps{workers, tree{arity}, fastest{1}, unbounded{}};
                                     numbers model(100), update(100);
                                     while (steps.next(model)) {
                                         rill::compute(net, 1);
                                         steps.reduce(numbers(100, 1), update);
                                         ++rounds[static_cast<std::size_t>(net.rank())];
                                         if (steps.is_root() && steps.number() == 40) steps.end();
                                     }
                                 });
            CHECK(rounds[0] == 40);
            for (const std::uint64_t each : rounds) CHECK(each >= 2);
        }
}

TEST_CASE("rounds: a rank whose rounds have ended learns it, though a large state waits for it") {
    rill::simulated::run(2, {.mailbox_bytes = 500}, [](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}, tolerate{1}};
        numbers model(100), update(100);
        while (steps.next(model)) {
            steps.reduce(numbers(100, 1), update);
            if (steps.is_root() && steps.number() == 2) steps.end();
            if (!steps.is_root()) net.sleep_until(net.now() + rill::milliseconds(100));
        }
    });
}

TEST_CASE("rounds: one after the other, two at a time, and with collectives of the group in between") {
    rill::simulated::run(4, {}, [](endpoint& net) {
        rill::group workers{net, star{}};
        for (int again = 0; again < 3; ++again) {
            rill::rounds one{workers, star{}, tolerate{1}};
            rill::rounds two{workers, tree{2}};
            numbers model(3), update(3), other(5), sum(5);
            while (one.next(model)) {
                REQUIRE(two.next(other));
                CHECK(other == numbers(5, static_cast<std::int64_t>(two.number()) - 1));
                one.reduce(numbers(3, 1), update);
                two.reduce(numbers(5, 2), sum);
                rill::barrier(workers);
                if (!one.is_root()) continue;
                CHECK(sum == numbers(5, 8));
                other.assign(5, static_cast<std::int64_t>(two.number()));
                if (one.number() == 4) one.end();
            }
        }
    });
}

namespace {

/// Rounds whose channel a test can read.
template <class Group>
struct open_rounds : rill::rounds<Group, star> {
    using rill::rounds<Group, star>::rounds;
    rill::channel channel() { return {this->links().context(), 0}; }
};

/// A head that announces ten numbers, and nothing behind it.
rill::buffer cut_short(const rill::channel& on, rill::message_kind kind) {
    rill::buffer bytes(rill::wire::header_bytes);
    rill::wire::encode({.kind = kind,
                        .element = rill::element_type::int64,
                        .index_bytes = 4,
                        .codes = {.indices = rill::index_coding::dense},
                        .context = on.context,
                        .number = 1,
                        .call = 7,
                        .dimension = 10,
                        .range = {0, 10},
                        .count = 10},
                       bytes.data());
    return bytes;
}

}  // namespace

TEST_CASE("rounds: a parent or child that sends bytes that are no frame is named") {
    const auto culprits_of = [](auto&& play) {
        std::vector<rill::rank_t> culprits(3, -7);
        rill::simulated::run(3, {.latency = rill::microseconds(10)}, [&](endpoint& end) {
            rill::group workers{end, star{}, {.timeout = rill::seconds(10)}};
            open_rounds<decltype(workers)> steps{workers, star{}};
            try {
                play(end, steps);
            } catch (const rill::protocol_error& e) {
                culprits[static_cast<std::size_t>(end.rank())] = e.culprit();
                CHECK(std::string(e.what()).find("sent bytes that are no valid frame") != std::string::npos);
            }
        });
        return culprits;
    };
    CHECK(culprits_of([&](endpoint& end, auto& steps) {
              if (end.rank() == 0)
                  for (const rill::rank_t to : {1, 2})
                      end.post(to, steps.channel(), cut_short(steps.channel(), rill::detail::round_kind::next_round));
              numbers mine(10);
              if (end.rank() == 0)
                  end.receive(1, steps.channel(),
                              end.now() + rill::seconds(10));  // throws the error that the others report
              else
                  steps.next(mine);
          }) == std::vector<rill::rank_t>(3, 0));
    CHECK(culprits_of([&](endpoint& end, auto& steps) {
              numbers mine(10), whole(10);
              if (end.rank() == 1) {
                  CHECK(steps.next(mine));
                  end.post(0, steps.channel(), rill::buffer(50, std::byte{9}));
                  end.receive(0, steps.channel(), end.now() + rill::seconds(10));
                  return;
              }
              while (steps.next(mine)) steps.reduce(mine, whole);
          }) == std::vector<rill::rank_t>(3, 1));
}

TEST_CASE("rounds: a contribution stays in the residual if the rounds have ended by an error") {
    cases::failures all;
    rill::simulated::run(3, {}, [&](auto& net) {
        const auto fail = [&](const std::string& what) { all.add("rank " + std::to_string(net.rank()) + " " + what); };
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.count = 3}}.bind(16);
        std::vector<float> input(16), output(16);
        for (std::size_t i = 0; i < 16; ++i) input[i] = static_cast<float>(i + 1);
        steps.next(output);
        if (net.rank() == 2) {
            input[5] = NAN;
            cases::expect_error<rill::invalid_value>([&] { steps.reduce(input, output, codec); }, 2, "coordinate 5",
                                                     fail);
            return;
        }
        net.sleep_until(net.now() + rill::milliseconds(10));
        for (const float due : {136.0F, 272.0F}) {  // the failure has arrived before both calls
            cases::expect_error<rill::error>([&] { steps.reduce(input, output, codec); }, 2, "coordinate 5", fail);
            float left = 0;
            for (const float x : codec.residual()) left += x;
            if (left != due) fail("keeps " + std::to_string(left) + " of " + std::to_string(due));
        }
    });
    CHECK(all.text() == "");
}
