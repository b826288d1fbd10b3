#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace rill::straggler;
using rill::partial_all_reduce;
using rill::push_fate;
using rill::simulated::endpoint;
using rill::topology::ring;
using outcome = rill::push_fate::outcome;

namespace partial {

/// Adds the sum of all gradients to the model, so that a model of whole numbers counts them.
struct add_up {
    using fold_type = rill::aggregate::sum;

    struct bound {
        std::uint64_t applied = 0;
        void apply(std::span<double> model, std::span<const double> fold, double, std::uint64_t round) {
            CHECK(round >= applied);  // a round in which nobody contributes moves nothing
            applied = round + 1;
            for (std::size_t i = 0; i < model.size(); ++i) model[i] += fold[i];
        }
    };
    template <class T>
    bound bind(std::size_t) const {
        return {};
    }
};

/// Ranks take 1 ms and up to `spread` ms more for each gradient.
rill::simulated::network uneven(int spread) {
    return {.latency = rill::microseconds(10), .computing = [=](rill::rank_t rank, std::uint64_t step, double) {
                const float more = rill::counter_rng(rill::random_key{3}.derive(rank)).uniform(step);
                return rill::milliseconds(1) + rill::microseconds(std::int64_t(1000 * more) * spread);
            }};
}

/// What one rank saw of a run.
struct account {
    std::uint64_t pushes = 0, version = 0;
    std::map<outcome, std::uint64_t> fates;
    std::set<std::uint64_t> told;
    std::uint32_t oldest = 0;
    double weight = 0;
    std::vector<double> model;
    std::string error;
    rill::rank_t culprit = rill::no_rank;

    void take(auto& replica) {
        while (const auto fate = replica.fate()) {
            CHECK(told.insert(fate->push).second);
            ++fates[fate->what];
            if (fate->what != outcome::counted) continue;
            oldest = std::max(oldest, fate->age);
            weight += fate->weight;
        }
    }
};

/// Pushes gradients that are 1 at this rank's coordinate until version `last`, and ends the run then.
template <class Start, class Age, class Sum>
account count_pushes(endpoint& net, Start start, Age age, Sum sum, std::uint64_t last) {
    rill::group workers{net, ring{}};
    account seen;
    std::vector<double> model(static_cast<std::size_t>(net.size())), gradient = model;
    gradient[static_cast<std::size_t>(net.rank())] = 1;
    partial_all_reduce replica{workers, start, age, sum, add_up{}, model};
    try {
        while (const auto held = replica.pull(model)) {
            seen.take(replica);
            if (held->version >= last) {
                replica.end();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
            ++seen.pushes;
        }
    } catch (const rill::error& thrown) {
        seen.error = thrown.what();
        seen.culprit = thrown.culprit();
    }
    seen.take(replica);
    seen.version = replica.version();
    seen.model.assign(replica.newest().begin(), replica.newest().end());
    return seen;
}

template <class Start, class Age, class Sum>
std::vector<account> counts_of(int ranks, const rill::simulated::network& network, Start start, Age age, Sum sum,
                               std::uint64_t last = 50) {
    std::vector<account> all(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, network, [&](endpoint& net) {
        all[static_cast<std::size_t>(net.rank())] = count_pushes(net, start, age, sum, last);
    });
    return all;
}

/// Each push is told once; the model holds what counted; all ranks ended after the same round with the same model.
void check_books(const std::vector<account>& all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const account& each = all[rank];
        CAPTURE(rank);
        CHECK(each.error.empty());
        CHECK(each.told.size() == each.pushes);
        CHECK(each.version == all[0].version);
        CHECK(each.model == all[0].model);
        CHECK(each.model[rank] == each.weight);
    }
}

/// A gradient that depends on model, rank and step.
void gradient_of(std::span<const float> model, int rank, std::uint64_t step, std::span<float> to) {
    const rill::counter_rng draw(rill::random_key{11}.derive(rank, step));
    for (std::size_t i = 0; i < model.size(); ++i) to[i] = 0.5F * model[i] + draw.uniform(i) - 0.5F;
}

constexpr std::uint64_t steps = 20;

/// Descent with momentum in lockstep: the reference.
template <class Net, class Shape>
std::vector<float> lockstep(Net& net, Shape shape, std::size_t n) {
    rill::group workers{net, shape};
    std::vector<float> model(n, 1.0F), gradient(n), update(n);
    auto optimizer = rill::train::sgd{.momentum = 0.5}.bind<float>(n);
    for (std::uint64_t step = 0; step < steps; ++step) {
        gradient_of(model, net.rank(), step, gradient);
        rill::all_reduce(workers, gradient, update, rill::aggregate::mean{});
        optimizer.step(model, update, 0.01 * net.size());
    }
    return model;
}

template <class Net, class Shape>
std::vector<float> all_ready_rounds(Net& net, Shape shape, std::size_t n) {
    rill::group workers{net, shape};
    std::vector<float> model(n, 1.0F), gradient(n);
    const rill::train::descent descent{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.01}};
    partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, descent, model};
    while (const auto held = replica.pull(model)) {
        if (held->version >= steps) {  // a rank that has retired starts a round, and another may miss its version
            replica.retire();
            continue;
        }
        gradient_of(model, net.rank(), held->version, gradient);
        replica.push(gradient, *held);
    }
    CHECK(replica.latest().contributors == 0);  // the last round was that of the ranks that retired
    return model;
}

void check_all_ready(auto&& run) {
    for (const int ranks : {1, 2, 3, 4, 5})
        for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{130}})
            run(ranks, [n](auto& net) {
                const auto same = [&](auto shape) {
                    CHECK(all_ready_rounds(net, shape, n) == lockstep(net, shape, n));
                };
                same(ring{});
                same(rill::topology::recursive_doubling{});
                same(rill::topology::split_allgather{});
                same(rill::topology::halving_doubling{});
                same(rill::topology::tree{});
                same(rill::topology::star{});
            });
}

}  // namespace partial

using namespace partial;

TEST_CASE("partial_all_reduce: all_ready gives the bits of lockstep") {
    check_all_ready([](int ranks, auto body) { rill::simulated::run(ranks, {}, body); });
}

TEST_CASE("partial_all_reduce: all_ready gives the bits of lockstep, among threads") {
    check_all_ready([](int ranks, auto body) { rill::in_process::run(ranks, body); });
}

TEST_CASE("partial_all_reduce: two_choices with one probe makes the rounds of majority, with all those of solo") {
    const auto same = [](int ranks, auto one, auto other) {
        const auto left = counts_of(ranks, uneven(20), one, bounded{4}, plain_sum{});
        const auto right = counts_of(ranks, uneven(20), other, bounded{4}, plain_sum{});
        CAPTURE(ranks);
        for (std::size_t rank = 0; rank < left.size(); ++rank) {
            CHECK(left[rank].pushes == right[rank].pushes);
            CHECK(left[rank].fates == right[rank].fates);
            CHECK(left[rank].oldest == right[rank].oldest);
            CHECK(left[rank].model == right[rank].model);
        }
    };
    for (const int ranks : {1, 2, 3, 5}) {
        same(ranks, two_choices{1}, majority{});
        same(ranks, two_choices{ranks}, solo{});
    }
}

TEST_CASE("partial_all_reduce: what counts, is dropped or is left over is what was pushed") {
    for (const int ranks : {1, 2, 3, 8})
        for (const int spread : {0, 1, 20}) {
            CAPTURE(ranks);
            CAPTURE(spread);
            check_books(counts_of(ranks, uneven(spread), solo{}, unbounded{}, plain_sum{}));
            check_books(counts_of(ranks, uneven(spread), majority{}, in_step{}, plain_sum{}));
            check_books(counts_of(ranks, uneven(spread), two_choices{1}, bounded{2}, plain_sum{}));
            check_books(counts_of(ranks, uneven(spread), majority{}, bounded{0}, plain_sum{}));
            check_books(counts_of(ranks, uneven(spread), all_ready{}, bounded{4}, plain_sum{}));
        }
}

TEST_CASE("partial_all_reduce: a gradient that is too old is dropped, and told") {
    const auto all = counts_of(8, uneven(20), solo{}, bounded{2}, plain_sum{}, 300);
    check_books(all);
    std::uint64_t dropped = 0;
    for (const account& each : all) {
        CHECK(each.oldest <= 2);
        dropped += each.fates.contains(outcome::too_old) ? each.fates.at(outcome::too_old) : 0;
    }
    CHECK(dropped > 0);
    std::uint32_t oldest = 0;
    for (const account& each : counts_of(8, uneven(20), solo{}, in_step{}, plain_sum{}, 300))
        oldest = std::max(oldest, each.oldest);
    CHECK(oldest > 2);
}

TEST_CASE("partial_all_reduce: a rank runs ahead of its rounds as far as the staleness lets it") {
    for (const std::uint32_t most : {1U, 3U}) {
        std::uint64_t pushed_at_once = 0;
        rill::simulated::run(2, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}};
            std::vector<double> model(1);
            partial_all_reduce replica{workers, all_ready{}, bounded{most}, plain_sum{}, add_up{}, model};
            if (net.rank() == 1) net.sleep_until(net.now() + rill::seconds(1));
            std::uint64_t at_first = 0;
            while (const auto held = replica.pull(model)) {
                if (held->version > 0) {
                    replica.end();
                } else {
                    replica.push(model, *held);
                    ++at_first;
                }
            }
            if (net.rank() == 0) pushed_at_once = at_first;
        });
        CHECK(pushed_at_once == most);
    }
}

TEST_CASE("partial_all_reduce: ranks that have retired are not waited for") {
    std::vector<account> all(3);
    rill::simulated::run(3, uneven(1), [&](endpoint& net) {
        rill::group workers{net, ring{}};
        account& seen = all[static_cast<std::size_t>(net.rank())];
        std::vector<double> model(3), gradient(3);
        gradient[static_cast<std::size_t>(net.rank())] = 1;
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add_up{}, model};
        while (const auto held = replica.pull(model)) {
            net.compute(1);
            replica.push(gradient, *held);
            ++seen.pushes;
            if (seen.pushes == 5U * static_cast<unsigned>(net.rank() + 1)) replica.retire();
        }
        seen.take(replica);
        seen.version = replica.version();
        seen.model.assign(replica.newest().begin(), replica.newest().end());
    });
    check_books(all);
    CHECK(all[0].model == std::vector<double>{5, 10, 15});
    CHECK_THROWS_AS(rill::simulated::run(1, {},
                                         [](endpoint& net) {
                                             rill::group workers{net, ring{}};
                                             std::vector<double> model(1);
                                             partial_all_reduce replica{workers,     solo{},   unbounded{},
                                                                        plain_sum{}, add_up{}, model};
                                             replica.retire();
                                             replica.push(model, {});
                                         }),
                    rill::contract_violation);
}

TEST_CASE("partial_all_reduce: the end comes at once, whoever the trigger waits for") {
    rill::simulated::run(4, {}, [](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = rill::seconds(3600)}};
        std::vector<double> model(3);
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add_up{}, model};
        const auto held = replica.pull(model);
        REQUIRE(held);
        if (net.rank() == 2) {
            replica.end();
        } else {
            net.sleep_until(net.now() + rill::seconds(100));  // a long gradient
            replica.push(std::vector<double>(3, 1), *held);
        }
        const rill::time_point before = net.now();
        CHECK(!replica.pull(model));
        CHECK(net.now() - before < rill::seconds(1));
        CHECK(replica.version() == 1);
        if (net.rank() != 2) CHECK(replica.fate().value().what == outcome::run_over);
    });
}

TEST_CASE("partial_all_reduce: what has piled up is one contribution, as the backlog weighs it") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(1);
        partial_all_reduce replica{workers, all_ready{}, unbounded{}, linear_mean{}, add_up{}, model};
        const auto held = replica.pull(model);
        REQUIRE(held);
        if (net.rank() == 0)
            for (const double each : {6.0, 12.0, 60.0}) replica.push(std::vector<double>{each}, *held);
        net.sleep_until(rill::time_point{} + rill::milliseconds(10));
        if (net.rank() == 1) {
            replica.push(std::vector<double>{1000}, *held);
            net.sleep_until(rill::time_point{} + rill::milliseconds(20));
            replica.end();
        }
        while (replica.pull(model)) continue;
        CHECK(model[0] == doctest::Approx(1000 + 6.0 / 6 + 12.0 * 2 / 6 + 60.0 * 3 / 6));
        for (int push = 0; net.rank() == 0 && push < 3; ++push)
            CHECK(replica.fate().value().weight == doctest::Approx((push + 1) / 6.0));
    });
}

TEST_CASE("partial_all_reduce: only ranks that the trigger asks say that they are ready") {
    constexpr int ranks = 8;
    std::uint64_t messages = 0, rounds = 0;
    rill::simulated::run(ranks, uneven(20), [&](endpoint& net) {
        const auto sent_by = [&](auto&& work) {
            const std::uint64_t before = net.counted().messages_sent;
            work();
            return net.counted().messages_sent - before;
        };
        rill::group workers{net, ring{}};
        std::vector<double> model(ranks), gradient = model;
        std::vector<std::int64_t> table(2 * ranks);
        const std::uint64_t in_collectives = sent_by([&] {
            rill::all_reduce(workers, table, table);
            rill::all_reduce(workers, gradient, model);
        });
        partial_all_reduce replica{workers, majority{}, in_step{}, plain_sum{}, add_up{}, model};
        std::uint64_t to_oneself = 0;
        const std::uint64_t sent = sent_by([&] {
            while (const auto held = replica.pull(model)) {
                ++to_oneself;
                net.compute(1);
                held->version < 50 ? replica.push(gradient, *held) : replica.end();
            }
        });
        rounds = replica.version();
        messages += sent - to_oneself - rounds * in_collectives;
    });
    CHECK(messages > rounds * (ranks - 1));
    CHECK(messages <= rounds * (ranks - 1 + 2) + 2 * ranks);  // the end is told by all
}

TEST_CASE("partial_all_reduce: the receipt of a round lists its contributors with weights and ages") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(1), gradient{1};
        partial_all_reduce replica{workers, solo{}, unbounded{}, plain_sum{}, add_up{}, model};
        const auto first = replica.pull(model);
        CHECK(replica.latest().in.empty());
        const rill::time_point begin = net.now();
        net.sleep_until(begin + rill::seconds(net.rank()));
        replica.push(gradient, *first);
        net.sleep_until(begin + rill::seconds(2));
        replica.pull(model);
        using in = std::vector<rill::contributor>;
        CHECK(replica.latest().in == in{{.rank = 1, .age = 1, .weight = 1}});
        CHECK(replica.latest().contributors == 1);
        CHECK(replica.latest().wire.messages_sent > 0);
        net.sleep_until(begin + rill::seconds(3));
        replica.end();
        CHECK(!replica.pull(model));
    });
}

TEST_CASE("partial_all_reduce: a NaN counts as nothing, names its coordinate, and stops nobody") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(4), gradient(4, 1.0);
        if (net.rank() == 1) gradient[2] = std::numeric_limits<double>::quiet_NaN();
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add_up{}, model};
        while (const auto held = replica.pull(model)) {
            if (held->version == 3)
                replica.end();
            else
                replica.push(gradient, *held);
        }
        CHECK(model == std::vector<double>(4, 3.0));
        const auto fate = replica.fate();
        REQUIRE(fate);
        CHECK(fate->what == (net.rank() == 0 ? outcome::counted : outcome::not_finite));
        CHECK(fate->coordinate == (net.rank() == 0 ? 0U : 2U));
        CHECK(fate->round == 0);
    });
}

TEST_CASE("partial_all_reduce: with a codec the residual comes in later rounds") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(30), gradient(30, 1.0);
        const auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}};
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add_up{}, model, codec};
        while (const auto held = replica.pull(model)) {
            if (held->version == 20)
                replica.end();
            else
                replica.push(gradient, *held);
        }
        double total = 0;
        for (const double each : model) total += each;
        CHECK(total > 3 * 20 * 30 * 0.7);  // all but what is still in the residuals
        CHECK(total <= 3 * 20 * 30);
    });
}

TEST_CASE("partial_all_reduce: a killed rank ends the run on all others, with one culprit") {
    std::set<std::string> seen;
    for (const rill::rank_t victim : {0, 1, 3})
        for (const std::uint64_t after : {40U, 100U, 101U, 117U, 250U, 333U}) {
            rill::simulated::network network = uneven(2);
            network.faults.faults = {rill::faults::kill(victim).after(after)};
            std::vector<account> all(4);
            rill::simulated::run(4, network, [&](endpoint& net) {
                all[static_cast<std::size_t>(net.rank())] =
                    count_pushes(net, majority{}, bounded{4}, plain_sum{}, 10'000);
            });
            for (rill::rank_t rank = 0; rank < 4; ++rank) {
                if (rank == victim) continue;
                CAPTURE(victim);
                CAPTURE(after);
                CAPTURE(all[static_cast<std::size_t>(rank)].error);
                CHECK(all[static_cast<std::size_t>(rank)].culprit == victim);
                CHECK(all[static_cast<std::size_t>(rank)].told.size() == all[static_cast<std::size_t>(rank)].pushes);
            }
        }
}

TEST_CASE("partial_all_reduce: destroying it early ends the run on all ranks") {
    std::vector<account> all(3);
    rill::simulated::run(3, uneven(1), [&](endpoint& net) {
        if (net.rank() != 1) {
            all[static_cast<std::size_t>(net.rank())] = count_pushes(net, all_ready{}, in_step{}, plain_sum{}, 100);
            return;
        }
        rill::group workers{net, ring{}};
        std::vector<double> model(3);
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add_up{}, model};
        replica.push(model, *replica.pull(model));
    });
    for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
        CHECK(all[rank].culprit == 1);
        CHECK(all[rank].error.find("destroyed its partial_all_reduce") != std::string::npos);
    }
}

TEST_CASE("partial_all_reduce: other policies or another model on one rank are a mismatch, which names it") {
    const auto culprit = [](auto&& make) {
        std::set<rill::rank_t> culprits;
        rill::simulated::run(3, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}};
            std::vector<double> model(2);
            try {
                make(workers, model, net.rank() == 1);
            } catch (const rill::mismatch& thrown) {
                culprits.insert(thrown.culprit());
            }
        });
        return culprits;
    };
    const std::set<rill::rank_t> odd{1};
    CHECK(culprit([](auto& workers, auto& model, bool is_odd) {
              partial_all_reduce replica{workers, two_choices{is_odd ? 1 : 2}, bounded{2}, plain_sum{}, add_up{},
                                         model};
          }) == odd);
    CHECK(culprit([](auto& workers, auto& model, bool is_odd) {
              partial_all_reduce replica{workers, solo{}, bounded{is_odd ? 1U : 2U}, plain_sum{}, add_up{}, model};
          }) == odd);
    CHECK(culprit([](auto& workers, auto& model, bool is_odd) {
              const rill::train::descent rule{rill::train::sgd{}, rill::train::constant_rate{is_odd ? 1.0 : 2.0}};
              partial_all_reduce replica{workers, solo{}, bounded{2}, plain_sum{}, rule, model};
          }) == odd);
    CHECK(culprit([](auto& workers, auto& model, bool is_odd) {
              if (is_odd) model[1] = 1;
              partial_all_reduce replica{workers, solo{}, bounded{2}, plain_sum{}, add_up{}, model};
          }) == odd);
}

TEST_CASE("partial_all_reduce: what is wrong in a call is refused before anything is sent") {
    rill::simulated::run(1, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(2), other(3);
        CHECK_THROWS_AS((partial_all_reduce{workers, two_choices{2}, in_step{}, plain_sum{}, add_up{}, model}),
                        rill::contract_violation);
        partial_all_reduce replica{workers, solo{}, in_step{}, plain_sum{}, add_up{}, model};
        const auto held = replica.pull(model);
        CHECK_THROWS_AS(replica.pull(other), rill::contract_violation);
        CHECK_THROWS_AS(replica.push(other, *held), rill::contract_violation);
        CHECK_THROWS_AS(replica.push(model, {.version = 1}), rill::contract_violation);
        CHECK_THROWS_AS(replica.newest(), rill::contract_violation);
        replica.end();
        CHECK(!replica.pull(model));
        CHECK(!replica.fate());
        CHECK(replica.version() == 1);
    });
}
