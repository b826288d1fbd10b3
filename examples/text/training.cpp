#include "training.hpp"

#include "../shared/progress.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/random.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/libsvm.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/sparse_bsp.hpp>
#include <rill/train/sparse_linear.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace text {

namespace train = rill::train;

namespace {

using endpoint = rill::in_process::endpoint;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t steps_of(const arguments& chosen, const samples& data) {
    if (chosen.steps != 0) return chosen.steps;
    const std::size_t at_once = static_cast<std::size_t>(chosen.ranks) * chosen.batch;
    return std::max<std::uint64_t>(1, chosen.epochs * (data.rows / at_once));
}

/// What a rank has seen since the run began or, of losses, since the last milestone.
struct sums {
    double loss = 0;
    std::uint64_t steps = 0, bytes = 0;
    double seconds = 0;
};

/// The milestone of all ranks; its messages are not part of what is measured.
template <class Group, class Trainer>
milestone evaluate(Group& workers, Trainer& trainer, const samples& data, const sums& own) {
    const train::sparse_dataset& unseen = data.held_out[static_cast<std::size_t>(workers.rank())];
    const auto correct = train::count_correct(trainer.model(), trainer.parameters(), unseen, {0, unseen.rows});
    std::array<double, 3> all{own.loss / static_cast<double>(own.steps), static_cast<double>(correct),
                              static_cast<double>(own.bytes)};
    all_reduce(workers, all, all);
    return {.step = trainer.step_number(),
            .seconds = own.seconds,
            .loss = all[0] / workers.size(),
            .accuracy = all[1] / static_cast<double>(data.unseen),
            .megabytes = all[2] * 1e-6 / workers.size()};
}

template <class Plan>
std::vector<milestone> fit_rank(endpoint& net, const arguments& chosen, const samples& data, const Plan& plan,
                                shared::progress shown) {
    const std::uint64_t steps = steps_of(chosen, data), between = std::max<std::uint64_t>(1, steps / 20);
    const train::sparse_dataset& mine = data.train[static_cast<std::size_t>(net.rank())];
    train::trainer trainer{net, train::sparse_linear<train::logistic>(data.columns),
                           train::minibatches_of<train::sparse_dataset>{
                               mine, {.batch = chosen.batch, .key = rill::random_key{chosen.seed}.derive(net.rank())}},
                           plan};
    rill::group workers{net, rill::topology::tree{}, {.name = "evaluation"}};
    std::vector<milestone> curve;
    sums own;
    for (std::uint64_t step = 1; step <= steps; ++step) {
        const double start = seconds_now();
        const train::step_record record = trainer.step();
        own.bytes += record.exchange.wire.bytes_sent;
        if (step == steps) {
            trainer.end();
            own.bytes += trainer.step().exchange.wire.bytes_sent;  // what is under way
        }
        own.seconds += seconds_now() - start;
        own.loss += record.loss;
        ++own.steps;
        if (net.rank() == 0) shown.step(step, record.loss);
        if (step % between != 0 && step != steps) continue;
        curve.push_back(evaluate(workers, trainer, data, own));
        own.loss = 0;
        own.steps = 0;
        if (net.rank() == 0) shown.evaluated(step, curve.back().accuracy, curve.back().megabytes);
    }
    return curve;
}

template <class Plan>
outcome fit_with(const std::string& run, const arguments& chosen, const samples& data, const Plan& plan) {
    outcome result{.name = run};
    shared::progress shown(run, steps_of(chosen, data), shared::progress::is_on_terminal());
    rill::in_process::run(chosen.ranks, [&](endpoint& net) {
        auto curve = fit_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) result.curve = std::move(curve);
    });
    shown.finish();
    return result;
}

}  // namespace

samples read_samples(const arguments& chosen) {
    const auto ranks = static_cast<std::size_t>(chosen.ranks);
    samples data{.train = std::vector<train::sparse_dataset>(ranks),
                 .held_out = std::vector<train::sparse_dataset>(ranks)};
    rill::in_process::run(chosen.ranks, [&](endpoint& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        data.train[rank] = train::read_libsvm(chosen.train, net.rank(), net.size());
        data.held_out[rank] = train::read_libsvm(chosen.held_out, net.rank(), net.size());
    });
    for (const auto* parts : {&data.train, &data.held_out})
        for (const train::sparse_dataset& part : *parts) data.columns = std::max(data.columns, part.columns);
    for (auto* parts : {&data.train, &data.held_out})
        for (train::sparse_dataset& part : *parts) part.columns = data.columns;
    for (const train::sparse_dataset& part : data.train) data.rows += part.rows;
    for (const train::sparse_dataset& part : data.held_out) {
        data.unseen += part.rows;
        data.positive += static_cast<std::size_t>(
            std::count_if(part.labels.begin(), part.labels.end(), [](float label) { return label > 0; }));
    }
    if (data.unseen == 0) throw train::data_error(chosen.held_out, "holds no samples");
    return data;
}

outcome fit(const std::string& run, const arguments& chosen, const samples& data) {
    const std::uint64_t steps = steps_of(chosen, data);
    const train::warmup_cosine rate{.peak = chosen.rate, .warmup = steps / 20, .total = steps};
    const rill::topology::split_allgather shape;
    if (run == "dense") return fit_with(run, chosen, data, train::bsp{shape, train::sgd{}, rate});
    const rill::coding gaps{.indices = rill::index_coding::elias_fano};
    const rill::straggler::bounded staleness{run == "late" ? 1U : 0U};
    return fit_with(run, chosen, data,
                    train::sparse_bsp{shape, rill::stream_codings{gaps, gaps, gaps}, train::sgd{}, rate, staleness});
}

}  // namespace text
