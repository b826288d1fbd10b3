#include <rill/train/sparse_bsp.hpp>

#include "../support/allocations.hpp"
#include "../support/scratch.hpp"
#include "infinite_rate.hpp"
#include "jobs.hpp"
#include "sparse_samples.hpp"

#include <rill/collective/barrier.hpp>
#include <rill/train/sparse_linear.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace rill;

namespace sparse_jobs {

using vectors = std::vector<std::vector<float>>;

constexpr int ranks = 3;
constexpr train::step_decay rate{.initial = 0.5, .factor = 0.5, .every = 8};
const train::sparse_bsp plain{topology::split_allgather{}, stream_codings{}, train::sgd{}, rate};
const train::sparse_bsp beside{topology::split_allgather{}, stream_codings{}, train::sgd{}, rate,
                               straggler::bounded{1}};
const train::sparse_bsp rounded{topology::split_allgather{},
                                stream_codings{.copy = {.values = value_coding::qsgd4, .bucket = 16}}, train::sgd{},
                                rate, straggler::bounded{1}};

static_assert(train::Strategy<std::remove_cv_t<decltype(plain)>, in_process::endpoint>);
static_assert(train::Strategy<std::remove_cv_t<decltype(plain)>, simulated::endpoint, double>);

/// Rows of this rank alone.
const train::sparse_dataset& part_of(rank_t rank) {
    static const std::vector<train::sparse_dataset> parts{
        random_sparse(40, 90, 6, true, 1), random_sparse(40, 90, 6, true, 2), random_sparse(40, 90, 6, true, 3)};
    return parts[static_cast<std::size_t>(rank)];
}

train::minibatches_of<train::sparse_dataset> batches_of(rank_t rank, std::size_t batch = 5) {
    return {part_of(rank), {.batch = batch, .key = {static_cast<std::uint64_t>(rank) + 1}}};
}

/// A linear model that takes 1 ms of the transport's time for each gradient, and makes one of them invalid.
template <class Net>
class slow_linear : public train::sparse_linear<> {
  public:
    explicit slow_linear(Net& net, std::uint64_t spoilt = ~std::uint64_t{0})
        : train::sparse_linear<>(90), net_(&net), spoilt_(spoilt) {}

    double gradient(std::span<const float> parameters, const train::sparse_batch& samples, stream<float>& output) {
        net_->sleep_until(std::as_const(*net_).now() + milliseconds(1));
        const double loss = train::sparse_linear<>::gradient(parameters, samples, output);
        if (net_->rank() == 1 && step_ == spoilt_) output.values()[1] = std::numeric_limits<float>::quiet_NaN();
        ++step_;
        return loss;
    }

  private:
    Net* net_;
    std::uint64_t spoilt_, step_ = 0;
};

template <class Net, class Plan>
auto trainer_of(Net& net, const Plan& plan, std::uint64_t spoilt = ~std::uint64_t{0}, std::size_t batch = 5) {
    return train::trainer{net, slow_linear<Net>(net, spoilt), batches_of(net.rank(), batch), plan,
                          train::trainer_options{.group = {.timeout = seconds(20), .seed = 5}}};
}

std::vector<float> copy_of(std::span<const float> parameters) { return {parameters.begin(), parameters.end()}; }

/// The parameters of all ranks after `steps` steps.
template <class Plan>
vectors after(const Plan& plan, std::uint64_t steps) {
    vectors results(ranks);
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = trainer_of(net, plan);
        while (trainer.step_number() < steps) trainer.step();
        results[static_cast<std::size_t>(net.rank())] = copy_of(trainer.parameters());
    });
    return results;
}

TEST_CASE("sparse_bsp: after 20 steps the parameters are those of bsp, bit for bit") {
    vectors results(ranks), expected(ranks);
    jobs::on_transports(ranks, [&](auto& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        const train::trainer_options options{.group = {.timeout = seconds(20)}};
        train::trainer sparse{net, train::sparse_linear<>(90), batches_of(net.rank()), plain, options};
        train::trainer dense{net, train::sparse_linear<>(90), batches_of(net.rank()),
                             train::bsp{topology::split_allgather{}, train::sgd{}, rate}, options};
        for (int step = 0; step < 20; ++step) {
            const train::step_record one = sparse.step(), other = dense.step();
            CHECK(one.loss == other.loss);
            if (step == 0) CHECK(one.exchange.wire != other.exchange.wire);
        }
        results[rank] = copy_of(sparse.parameters());
        expected[rank] = copy_of(dense.parameters());
    });
    for (const auto& result : results) CHECK(result == expected[0]);
    CHECK(results[0] != std::vector<float>(91));
}

TEST_CASE("sparse_bsp: with staleness 1 a gradient misses the newest step, and nothing else") {
    vectors results(ranks), expected(ranks);
    jobs::on_transports(ranks, [&](auto& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        auto trainer = trainer_of(net, beside);
        for (int step = 0; step < 12; ++step) {
            const train::step_record done = trainer.step();
            CHECK(done.step == static_cast<std::uint64_t>(step));
            CHECK(done.exchange.contributors == (step == 0 ? 0 : ranks));
        }
        trainer.end();
        CHECK_FALSE(trainer.step());
        CHECK_FALSE(trainer.step());
        results[rank] = copy_of(trainer.parameters());

        group workers{net, topology::split_allgather{}};
        train::sparse_linear<> model(90);
        auto batches = batches_of(net.rank());
        auto optimizer = train::sgd{}.template bind<float>(91);
        std::vector<float> now(91);
        stream<float> gradient(91), late(91), mean(91);
        for (std::uint64_t step = 0; step <= 12; ++step) {
            if (step < 12) model.gradient(now, batches.next(), gradient);
            if (step > 0) {
                all_reduce(workers, late, mean, aggregate::mean{});
                optimizer.step(now, mean.view(), rate.rate(step - 1));
            }
            std::swap(gradient, late);
        }
        expected[rank] = now;
    });
    for (const auto& result : results) CHECK(result == expected[0]);
    CHECK(results != after(plain, 12));
}

TEST_CASE("sparse_bsp: with staleness 1 the exchange of a step costs no time while the next one computes") {
    const auto time_of = [](const auto& plan, duration latency) {
        duration longest{};
        simulated::run(ranks, {.latency = latency}, [&](auto& net) {
            auto trainer = trainer_of(net, plan);
            const time_point begun = net.now();
            while (trainer.step_number() < 20) trainer.step();
            if (net.rank() == 0) longest = net.now() - begun;
        });
        return longest;
    };
    const duration one_at_a_time = time_of(plain, microseconds(300)), overlapped = time_of(beside, microseconds(300));
    CHECK(one_at_a_time > milliseconds(32));
    CHECK(overlapped < milliseconds(21) + microseconds(500));
}

TEST_CASE("sparse_bsp: with staleness 1 the record of the first step has its time, too") {
    simulated::run(2, {}, [&](auto& net) {
        auto bound = beside.bind(net, jobs::three);
        std::vector<float> parameters(3);
        stream<float> gradient(3);
        const auto compute = [&] {
            net.sleep_until(net.now() + milliseconds(1));
            return 0.0;
        };
        for (std::uint64_t number = 0; number < 3; ++number) {
            const auto record = bound.step(std::span(parameters), gradient, number, compute);
            CHECK(record.phases.compute == milliseconds(1));
            CHECK(record.elapsed >= milliseconds(1));
        }
    });
}

TEST_CASE("sparse_bsp: a gradient that is not finite skips the step of all ranks, which name its coordinate") {
    const auto check = [](const auto& plan, std::uint64_t told) {
        std::vector<std::vector<train::step_record>> records(ranks);
        vectors results(ranks);
        jobs::on_transports(ranks, [&](auto& net) {
            auto trainer = trainer_of(net, plan, 4);
            auto& own = records[static_cast<std::size_t>(net.rank())];
            own.clear();
            while (trainer.step_number() < 8) own.push_back(trainer.step());
            results[static_cast<std::size_t>(net.rank())] = copy_of(trainer.parameters());
        });
        for (const auto& own : records)
            for (const train::step_record& record : own) {
                CHECK(record.skipped() == (record.step == told));
                if (record.skipped()) CHECK(record.invalid[0].rank == 1);
                if (record.skipped()) CHECK(record.invalid[0].coordinate > 0);
                CHECK(record.invalid == records[0][static_cast<std::size_t>(record.step)].invalid);
            }
        for (const auto& result : results) CHECK(result == results[0]);
    };
    check(plain, 4);
    check(beside, 5);
}

TEST_CASE("sparse_bsp: goes on from a checkpoint bit for bit, also with an exchange under way") {
    const auto check = [](const auto& plan) {
        const scratch_directory directory;
        const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
        vectors resumed(ranks);
        simulated::run(ranks, {}, [&](auto& net) {
            auto trainer = trainer_of(net, plan);
            while (trainer.step_number() < 7) trainer.step();
            train::checkpoint::writer out;
            trainer.save(out, "job.");
            out.save(path(net.rank()));
        });
        simulated::run(ranks, {}, [&](auto& net) {
            auto trainer = trainer_of(net, plan);
            trainer.step();  // another exchange may be under way
            trainer.restore(train::checkpoint::load(path(net.rank())), "job.");
            while (trainer.step_number() < 15) trainer.step();
            resumed[static_cast<std::size_t>(net.rank())] = copy_of(trainer.parameters());
        });
        CHECK(resumed == after(plan, 15));
    };
    check(plain);
    check(beside);
    check(rounded);
}

TEST_CASE("sparse_bsp: operations between the exchange under way and the checkpoint change no bit") {
    std::vector<buffer> files(ranks);
    vectors wanted(ranks), resumed(ranks);
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = trainer_of(net, rounded);
        while (trainer.step_number() < 7) trainer.step();
        barrier(trainer.strategy().workers());
        train::checkpoint::writer out;
        trainer.save(out, "");
        files[static_cast<std::size_t>(net.rank())] = out.bytes();
        while (trainer.step_number() < 15) trainer.step();
        wanted[static_cast<std::size_t>(net.rank())] = copy_of(trainer.parameters());
    });
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = trainer_of(net, rounded);
        trainer.restore(train::checkpoint::of("saved", files[static_cast<std::size_t>(net.rank())]), "");
        while (trainer.step_number() < 15) trainer.step();
        resumed[static_cast<std::size_t>(net.rank())] = copy_of(trainer.parameters());
    });
    CHECK(resumed == wanted);
}

TEST_CASE("sparse_bsp: without staleness no checkpoint goes on that holds a gradient on its way") {
    const scratch_directory directory;
    simulated::run(ranks, {}, [&](auto& net) {
        const auto path = directory / std::to_string(net.rank()).c_str();
        auto late = trainer_of(net, beside);
        late.step();
        train::checkpoint::writer out;
        late.save(out, "");
        out.save(path);
        auto prompt = trainer_of(net, plain);
        prompt.restore(train::checkpoint::load(path), "");
        const std::string message = message_of<contract_violation>([&] { prompt.step(); });
        CHECK_MESSAGE(has(message, "go on with staleness 1"), message);
    });
}

TEST_CASE("sparse_bsp: a checkpoint whose entries do not fit is refused") {
    using state = train::sparse_state<train::bound_sgd<float>, float>;
    const scratch_directory directory;
    state large{.optimizer = train::sgd{}.bind<float>(9), .sent = stream<float>(9), .step_sent = 3};
    large.sent.push_back(8, 1.5F);
    train::checkpoint::writer out;
    large.save(out, "");
    out.save(directory / "saved");
    const auto file = train::checkpoint::load(directory / "saved");
    state same{.optimizer = train::sgd{}.bind<float>(9), .sent = stream<float>(9)};
    same.restore(file, "");
    CHECK(same.sent == large.sent);
    CHECK(same.step_sent == 3);
    state small{.optimizer = train::sgd{}.bind<float>(8), .sent = stream<float>(8)};
    const std::string message = message_of<train::data_error>([&] { small.restore(file, ""); });
    CHECK_MESSAGE(has(message, "sent.indices\": expected ascending indices below 8, found 8"), message);
    CHECK(small.step_sent == 0);
}

TEST_CASE("sparse_bsp: one step late is the most that it takes") {
    simulated::run(1, {}, [](auto& net) {
        auto late = beside;
        late.staleness = straggler::bounded{2};
        const std::string message = message_of<contract_violation>([&] { trainer_of(net, late); });
        CHECK_MESSAGE(has(message, "staleness"), message);
        CHECK_MESSAGE(has(message, "bounded{0} or bounded{1}"), message);
    });
}

TEST_CASE("sparse_bsp: another staleness, optimizer or rate on one rank is refused on all ranks, by name") {
    const auto refused = [](const auto& odd, const char* what) {
        jobs::on_transports(ranks, [&](auto& net) {
            const std::string message = message_of<mismatch>([&] { trainer_of(net, net.rank() == 1 ? odd : plain); });
            CHECK_MESSAGE(has(message, std::string("rank 1 calls with another ") + what), message);
        });
    };
    refused(beside, "staleness");
    auto faster = plain;
    faster.rate.initial = 0.6;
    refused(faster, "rate");
    auto decaying = plain;
    decaying.optimizer.weight_decay = 0.1;
    refused(decaying, "optimizer");
}

TEST_CASE("sparse_bsp: all ranks refuse an infinite rate before they compute") {
    train::sparse_bsp plan{topology::split_allgather{}, stream_codings{}, train::sgd{}, jobs::infinite};
    jobs::check_infinite_rate(plan, stream<float>(3));
    plan.staleness = straggler::bounded{1};
    jobs::check_infinite_rate(plan, stream<float>(3));
}

#ifndef RILL_TEST_SANITIZED
TEST_CASE("sparse_bsp: steady steps allocate nothing") {
    const auto check = [](const auto& plan) {
        in_process::run(1, [&](auto& net) {
            auto trainer = trainer_of(net, plan, ~std::uint64_t{0}, 40);  // all rows: each step has the same entries
            while (trainer.step_number() < 150) trainer.step();           // the transport's history of calls is full
            const unsigned long before = allocations();
            while (trainer.step_number() < 300) trainer.step();
            CHECK(allocations() == before);
        });
    };
    check(plain);
    check(beside);
}
#endif

}  // namespace sparse_jobs
