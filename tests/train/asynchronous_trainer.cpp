#include <rill/train/asynchronous_trainer.hpp>

#include "replica_jobs.hpp"

#include <rill/aggregate/max.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/system/rna.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/local_replica.hpp>
#include <rill/train/pair_replica.hpp>
#include <rill/train/partial_replica.hpp>
#include <rill/train/server_replica.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace jobs;

namespace without_barrier {

const auto rna = systems::rna({.probes = 2, .staleness = 8}, train::sgd{.momentum = 0.9}, train::constant_rate{0.02});

/// All ranks in step, so that each round has all gradients.
const train::partial_replica in_rounds{topology::ring{},
                                       straggler::all_ready{},
                                       straggler::in_step{},
                                       straggler::plain_sum{},
                                       train::descent{train::sgd{.momentum = 0.9}, train::constant_rate{0.05}},
                                       compress::error_feedback{compress::top_k{.density = 0.1}}};

template <class Net, class Plan>
auto make(Net& net, const Plan& plan, std::vector<spoilt_step> faults = {}, std::uint64_t seed = 7) {
    return make_asynchronous(net, spoilt_perceptron(net.rank(), std::move(faults)), plan, net.size(), seed);
}

/// Steps until version `last` and returns the final parameters.
template <class Trainer>
std::vector<float> end_at(Trainer& trainer, std::uint64_t last) {
    if (last == 0) trainer.end();
    while (trainer.step())
        if (trainer.version() + 1 >= last) trainer.end();
    return copy_of_parameters(trainer);
}

/// Runs to `version` on three ranks and saves each rank's file in `directory`. Returns the final parameters.
template <class Plan>
std::vector<float> saved_at(std::uint64_t version, const Plan& plan, const scratch_directory& directory) {
    std::vector<float> reached;
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = make(net, plan);
        const auto end = end_at(trainer, version);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(directory / std::to_string(net.rank()).c_str());
        if (net.rank() == 0) reached = end;
    });
    return reached;
}

}  // namespace without_barrier

using namespace without_barrier;

TEST_CASE("asynchronous_trainer: learns, and ends with the same parameters on all ranks") {
    on_transports(4, [](auto& net) {
        auto trainer = make(net, rna);
        const double before = loss_of(trainer.parameters());
        const auto own = end_at(trainer, 150);
        CHECK(has_learned(net, before, own));
        CHECK(trainer.version() >= 150);
        const auto& told = trainer.counts();
        CHECK(told.counted + told.too_old + told.run_over == trainer.step_number());
        CHECK(told.counted > 0);
        CHECK(!trainer.step());
        group workers{net, topology::ring{}};
        std::vector<float> sum(own.size());
        all_reduce(workers, own, sum, aggregate::max{});
        CHECK(sum == own);
    });
}

namespace without_barrier {

/// `all_ready` beside `bsp`, bit for bit: the update of a round is the mean times the number of ranks.
template <class Net, class Shape>
void check_bsp(Net& net, Shape shape, int steps) {
    CAPTURE(Shape::name);
    const train::partial_replica plan{shape, straggler::all_ready{}, straggler::in_step{}, straggler::plain_sum{},
                                      train::descent{train::sgd{.momentum = 0.5}, train::constant_rate{0.25}}};
    const train::bsp same{shape, train::sgd{.momentum = 0.5}, train::constant_rate{0.25 * net.size()}};
    auto rounds = make(net, plan);
    auto lockstep = make_trainer(net, same);
    for (int step = 0; step < steps; ++step) lockstep.step();
    while (rounds.version() < static_cast<std::uint64_t>(steps)) rounds.step();
    CHECK(copy_of_parameters(rounds) == copy_of_parameters(lockstep));
    group workers{net, topology::ring{}};
    barrier(workers);  // the run may end on a rank only once it has made this check
    rounds.end();
    while (rounds.step()) continue;
}

}  // namespace without_barrier

TEST_CASE("asynchronous_trainer: with all ranks in each round the steps are those of bsp, on each topology") {
    for (const int ranks : {1, 2, 3, 5})
        on_transports(ranks, [](auto& net) {
            check_bsp(net, topology::ring{}, 6);
            check_bsp(net, topology::recursive_doubling{}, 6);
            check_bsp(net, topology::halving_doubling{}, 6);
            check_bsp(net, topology::split_allgather{}, 6);
            check_bsp(net, topology::tree{}, 6);
            check_bsp(net, topology::star{}, 6);
        });
}

TEST_CASE("asynchronous_trainer: with all ranks in each round the steps are those of bsp, at P times the rate") {
    const train::partial_replica plan{topology::ring{}, straggler::all_ready{}, straggler::in_step{},
                                      straggler::plain_sum{}, train::descent{train::sgd{}, train::constant_rate{0.25}}};
    const train::bsp same{topology::ring{}, train::sgd{}, train::constant_rate{1}};
    on_transports(4, [&](auto& net) {
        auto rounds = make(net, plan);
        auto lockstep = make_trainer(net, same);
        for (int step = 0; step < 20; ++step) lockstep.step();
        while (rounds.version() < 20) rounds.step();
        CHECK(copy_of_parameters(rounds) == copy_of_parameters(lockstep));
        CHECK(rounds.step_number() == 21);
        group workers{net, topology::ring{}};
        barrier(workers);  // the run may end on a rank only once it has made these checks
        rounds.end();
        CHECK(!rounds.step());
    });
}

TEST_CASE("asynchronous_trainer: a gradient that is not finite is named in a record, and its rank goes on") {
    simulated::run(3, {}, [](auto& net) {
        auto trainer = make(net, rna, {{.rank = 1, .step = 2, .coordinate = 5}});
        std::vector<train::invalid_gradient> named;
        while (auto record = trainer.step()) {
            named.insert(named.end(), record.invalid.begin(), record.invalid.end());
            CHECK(record.step + 1 == trainer.step_number());
            if (trainer.version() > 30) trainer.end();
        }
        CHECK(trainer.counts().not_finite == (net.rank() == 1 ? 1U : 0U));
        CHECK(named ==
              (net.rank() == 1 ? std::vector{train::invalid_gradient{1, 5}} : std::vector<train::invalid_gradient>{}));
    });
}

namespace without_barrier {

struct broken {};

/// Throws once, after a part of the gradient has been written.
class breaking_model : public spoilt_perceptron {
  public:
    explicit breaking_model(bool breaks) : spoilt_perceptron(no_rank, {}), breaks_(breaks) {}
    double gradient(std::span<const float> parameters, const batch& samples, std::span<float> output) {
        output[0] = std::numeric_limits<float>::quiet_NaN();
        if (calls_++ == 2 && breaks_) throw broken{};
        return spoilt_perceptron::gradient(parameters, samples, output);
    }

  private:
    bool breaks_;
    int calls_ = 0;
};

/// Throws once, instead of its third batch.
class breaking_batches : public train::minibatches {
  public:
    breaking_batches(const train::minibatches& of, bool breaks) : train::minibatches(of), breaks_(breaks) {}
    decltype(auto) next() {
        if (calls_++ == 2 && breaks_) throw broken{};
        return train::minibatches::next();
    }

  private:
    bool breaks_;
    int calls_ = 0;
};

/// In turn the model, the batches and the hook of rank 1 throw.
template <class Plan>
void check_broken(const Plan& plan, bool ends_alike) {
    for (int what = 0; what < 3; ++what) {
        std::vector<std::vector<float>> ends(3);
        simulated::run(3, {.latency = microseconds(20)}, [&](auto& net) {
            const int breaks = net.rank() == 1 ? what : -1;
            const train::minibatches own{data(), {.batch = 8, .rank = net.rank(), .ranks = 3, .key = {2}}};
            train::asynchronous_trainer trainer{net,
                                                breaking_model(breaks == 0),
                                                breaking_batches(own, breaks == 1),
                                                plan,
                                                train::trainer_options{.group = {.timeout = seconds(20)}},
                                                [&](const train::step_record& of) {
                                                    if (breaks == 2 && of.step == 2) throw broken{};
                                                }};
            int thrown = 0;
            for (bool goes_on = true; goes_on;) {
                try {
                    goes_on = static_cast<bool>(trainer.step());
                } catch (const broken&) {
                    ++thrown;
                }
                net.sleep_until(net.now() + microseconds(50 + 10 * net.rank()));
                if (trainer.step_number() == 8) trainer.retire();
            }
            CHECK(thrown == (net.rank() == 1 ? 1 : 0));
            CHECK(trainer.step_number() == 8);
            CHECK(trainer.counts().counted == 8);
            ends[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
        });
        if (ends_alike) CHECK(ends[0] == ends[1]);
        if (ends_alike) CHECK(ends[0] == ends[2]);
    }
}

}  // namespace without_barrier

TEST_CASE("asynchronous_trainer: an exception of model, batches or hook leaves the run as it is") {
    const train::descent rule{train::sgd{.momentum = 0.9}, train::constant_rate{0.02}};
    check_broken(rna, true);
    check_broken(in_rounds, true);
    check_broken(train::server_replica{server_options{.servers = 2, .dedicated = false}, straggler::bounded{1}, rule},
                 true);
    check_broken(train::pair_replica{topology::anyone{}, rule}, false);
    check_broken(train::local_replica{in_rounds, {.every = 3}, rule}, true);
}

TEST_CASE("asynchronous_trainer: goes on where it was saved, bit for bit") {
    const scratch_directory directory, unused;
    const auto through = saved_at(9, in_rounds, unused);
    const auto saved = saved_at(4, in_rounds, directory);
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = make(net, in_rounds);
        trainer.restore(train::checkpoint::load(directory / std::to_string(net.rank()).c_str()), "run.");
        CHECK(trainer.step_number() == 4);
        CHECK(trainer.version() == 4);
        CHECK(copy_of_parameters(trainer) == saved);
        CHECK(end_at(trainer, 9) == through);
        CHECK(trainer.version() == 9);
    });
}

TEST_CASE("asynchronous_trainer: where one rank's file does not fit, all ranks throw") {
    const scratch_directory early, late;
    saved_at(4, in_rounds, early);
    saved_at(5, in_rounds, late);
    const auto refusals = [](auto file_of, std::uint64_t odd_seed) {
        std::vector<std::string> texts(3);
        simulated::run(3, {}, [&](auto& net) {
            auto trainer = make(net, in_rounds, {}, net.rank() == 1 ? odd_seed : 7);
            try {
                trainer.restore(train::checkpoint::load(file_of(net.rank())), "run.");
            } catch (const std::exception& thrown) {
                texts[static_cast<std::size_t>(net.rank())] = thrown.what();
            }
        });
        return texts;
    };
    const auto name = [](rank_t rank) { return std::to_string(rank); };
    const auto one_late = refusals([&](rank_t r) { return (r == 2 ? late : early) / name(r).c_str(); }, 7);
    for (const std::string& text : one_late) {
        CAPTURE(text);
        CHECK(has(text, "rank 2 calls with another state that it goes on from"));
    }
    const auto exchanged = refusals([&](rank_t r) { return early / name(r == 2 ? 1 : r).c_str(); }, 7);
    for (const std::string& text : exchanged) CHECK(has(text, "expected 2, found 1"));
    CHECK(has(exchanged[0], "rank 2: "));
    CHECK(has(exchanged[1], "rank 2: "));
}

TEST_CASE("asynchronous_trainer: a file of another plan is refused, and the message names both") {
    const scratch_directory directory;
    saved_at(4, rna, directory);
    const train::pair_replica in_pairs{topology::anyone{}, train::descent{train::sgd{}, train::constant_rate{0.02}}};
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = make(net, in_pairs);
        const auto file = train::checkpoint::load(directory / std::to_string(net.rank()).c_str());
        const std::string message = message_of<train::data_error>([&] { trainer.restore(file, "run."); });
        CHECK_MESSAGE(has(message, "section \"run.plan\": expected pair_replica, found partial_replica"), message);
        CHECK(trainer.step_number() == 0);
    });
}

TEST_CASE("asynchronous_trainer: without a codec, no file goes on that holds residuals") {
    const scratch_directory directory;
    saved_at(4, in_rounds, directory);
    const train::partial_replica plain{in_rounds.topology, in_rounds.trigger, in_rounds.staleness, in_rounds.backlog,
                                       in_rounds.update};
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = make(net, plain);
        const auto file = train::checkpoint::load(directory / std::to_string(net.rank()).c_str());
        const std::string message = message_of<train::data_error>([&] { trainer.restore(file, "run."); });
        CHECK_MESSAGE(has(message, "section \"run.codec.residual\": expected nothing of this name"), message);
        CHECK(trainer.step_number() == 0);
    });
}

TEST_CASE("asynchronous_trainer: where one rank's file is missing, all ranks throw at once and name it") {
    const auto check = [](const auto& plan, int ranks, rank_t without = 1) {
        const scratch_directory directory;
        const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
        simulated::run(ranks, {}, [&](auto& net) {
            auto trainer = make(net, plan);
            end_at(trainer, 4);
            train::checkpoint::writer out;
            trainer.save(out, "run.");
            if (net.rank() != without) out.save(path(net.rank()));
        });
        std::vector<std::string> texts(static_cast<std::size_t>(ranks));
        simulated::run(ranks, {}, [&](auto& net) {
            auto trainer = make(net, plan);
            const time_point begin = net.now();
            texts[static_cast<std::size_t>(net.rank())] =
                message_of<std::exception>([&] { trainer.restore(train::checkpoint::open(path(net.rank())), "run."); });
            CHECK(net.now() - begin < milliseconds(100));
            CHECK_THROWS(trainer.step());
        });
        for (rank_t rank = 0; rank < ranks; ++rank) {
            const std::string& text = texts[static_cast<std::size_t>(rank)];
            CAPTURE(text);
            CHECK(has(text, "cannot be opened"));
            CHECK(has(text, "rank " + std::to_string(without) + ": ") == (rank != without));
        }
    };
    const train::descent rule{train::sgd{}, train::constant_rate{0.05}};
    check(rna, 3);
    check(rna, 2, 0);
    check(in_rounds, 3);
    check(train::server_replica{server_options{.servers = 2, .dedicated = false}, straggler::bounded{1}, rule}, 3);
    check(train::pair_replica{topology::anyone{}, rule}, 3);
    check(train::pair_replica{topology::anyone{}, rule}, 2, 0);
    check(train::local_replica{in_rounds, {.every = 2}, rule}, 3);
}

TEST_CASE("asynchronous_trainer: is saved after its end and restored before its first step only") {
    simulated::run(2, {}, [](auto& net) {
        auto trainer = make(net, rna);
        train::checkpoint::writer out;
        CHECK_THROWS_AS(trainer.save(out, ""), contract_violation);
        end_at(trainer, 3);
        const scratch_directory directory;
        trainer.save(out, "");
        out.save(directory / "file");
        CHECK_THROWS_AS(trainer.restore(train::checkpoint::load(directory / "file"), ""), contract_violation);
    });
}
