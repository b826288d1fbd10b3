#include <rill/adapt/tbb.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/serial.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/testing/executor_laws.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>

#include "../support/allocations.hpp"
#include "../support/same_bits.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

using rill::adapt::tbb_executor;

TEST_CASE("tbb: models the laws of executors") {
    ::tbb::task_arena two(2);
    for (const tbb_executor& executor : {tbb_executor{}, tbb_executor(two)})
        rill::testing::for_each_executor_law(executor, [](const char* name, const rill::testing::law_outcome& outcome) {
            CAPTURE(name);
            CAPTURE(outcome.what);
            CHECK(outcome.held);
        });
}

TEST_CASE("tbb: runs in the arena that it is given") {
    ::tbb::task_arena two(2);
    const tbb_executor executor(two);
    CHECK(executor.concurrency() == 2);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    executor.run(64, [&](std::size_t) {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
    });
    CHECK((1 <= seen.size() && seen.size() <= 2));
    CHECK(executor == tbb_executor(two));
    CHECK(executor != tbb_executor{});
}

TEST_CASE("tbb: every kernel gives the same bits as on one thread") {
    ::tbb::task_arena four(4);
    support::check_same_bits(tbb_executor(four));
}

namespace {

/// What a rank has after each of two steps in a group with this executor: dense, quantised, sparse and non-blocking.
template <class Executor, class Keep>
void exchange(auto& net, const Executor& executor, Keep keep) {
    using namespace rill::compress;
    rill::group workers{net, rill::topology::split_allgather{}, {}, executor};
    const auto input = support::vector_of<float>(support::many, net.rank());
    auto quantised = encoded{keep_all{}, qsgd{.bits = 4}, raw_indices{}, qsgd{.bits = 8}}.bind(support::many);
    auto sparse = error_feedback{top_k{.density = 0.3}}.bind(support::many);
    auto buckets = encoded{bucket_top_k{.count = 8, .bucket = 512}, bf16{}, packed_gaps{}}.bind(support::many);
    std::vector<float> output(support::many);
    for (int step = 0; step < 2; ++step) {
        rill::all_reduce(workers, input, output, rill::aggregate::mean{});
        keep(output);
        rill::all_reduce(workers, input, output, quantised);
        keep(output);
        rill::all_reduce(workers, input, output, sparse);
        keep(output);
        rill::all_reduce(workers, input, output, buckets);
        keep(output);
        rill::start_all_reduce(workers, input, output).get();
        keep(output);
    }
}

/// The results of rank 0 of three.
template <class Executor>
std::vector<float> results(const Executor& executor) {
    std::vector<float> joined;
    rill::in_process::run(3, [&](auto& net) {
        exchange(net, executor, [&](const std::vector<float>& output) {
            if (net.rank() == 0) joined.insert(joined.end(), output.begin(), output.end());
        });
    });
    return joined;
}

}  // namespace

TEST_CASE("tbb: a group with a tbb_executor gives the results of a group without one") {
    ::tbb::task_arena four(4);
    const auto expected = results(rill::serial{});
    CHECK(support::equal_bits(results(tbb_executor(four)), expected));
    CHECK(support::equal_bits(results(tbb_executor{}), expected));
}

TEST_CASE("tbb: the ranks of a group may have different executors") {
    ::tbb::task_arena four(4);
    const auto expected = results(rill::serial{});
    std::vector<float> joined;
    rill::in_process::run(3, [&](auto& net) {
        const auto keep = [&](const std::vector<float>& output) {
            if (net.rank() == 0) joined.insert(joined.end(), output.begin(), output.end());
        };
        if (net.rank() == 0)
            exchange(net, tbb_executor(four), keep);
        else
            exchange(net, rill::serial{}, keep);
    });
    CHECK(support::equal_bits(joined, expected));
}

TEST_CASE("tbb: a rank that fails in a task is named by all") {
    rill::in_process::run(2, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}, {}, tbb_executor{}};
        auto codec = rill::compress::top_k{.density = 0.01}.bind(support::many);
        auto input = support::vector_of<float>(support::many, 1);
        if (net.rank() == 1) input[support::many - 7] = input[200'000] = std::numeric_limits<float>::quiet_NaN();
        std::vector<float> output(support::many);
        const std::string said = support::error_of([&] { rill::all_reduce(workers, input, output, codec); });
        CHECK(said.find("rank 1") != std::string::npos);
        CHECK(said.find("200000") != std::string::npos);
    });
}

TEST_CASE("tbb: selecting, quantising and folding allocate nothing in a steady state") {
#ifndef RILL_TEST_SANITIZED
    ::tbb::task_arena four(4);
    const tbb_executor executor(four);
    const auto input = support::vector_of<float>(support::many, 1);
    auto sparse = rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}.bind(support::many);
    auto buckets = rill::compress::bucket_top_k{.count = 8, .bucket = 512}.bind(support::many);
    std::vector<float> dense(support::many), scales(rill::kernel::quantize_buckets(support::many, 512));
    std::vector<std::byte> codes(rill::kernel::quantized_bytes(support::many, 4, 512));
    const auto x = support::stream_of<float>(support::many, 1, 4), y = support::stream_of<float>(support::many, 2, 4);
    const rill::stream_view<float> operands[] = {x.view(), y.view()};
    const std::span<const float> inputs[] = {input, input};
    rill::stream<float> folded;
    rill::fold_scratch<float, std::uint32_t> scratch;
    const auto step = [&] {
        sparse.encode(std::span<const float>(input), executor);
        sparse.commit();
        buckets.encode(std::span<const float>(input), executor);
        rill::kernel::quantize(std::span(input), 4, 512, {}, 0, std::span(scales), codes, executor);
        rill::kernel::fold_dense_k<float>(inputs, dense, support::skew, executor);
        for (const double factor : {0.0, 1e9})
            rill::fold_streams<float, std::uint32_t>(operands, folded, support::skew, 0.0F, {factor}, scratch,
                                                     executor);
    };
    for (int i = 0; i < 5; ++i) step();
    const auto before = all_allocations();
    for (int i = 0; i < 10; ++i) step();
    CHECK(all_allocations() - before == 0);
#endif
}

TEST_CASE("tbb: rounds give the same result with and without a tbb_executor") {
    ::tbb::task_arena four(4);
    const auto result = [](const auto& executor) {
        std::vector<float> update(support::many);
        rill::in_process::run(3, [&](auto& net) {
            rill::group workers{net, rill::topology::split_allgather{}, {}, executor};
            rill::rounds steps{workers, rill::topology::tree{1}};
            std::vector<float> model(2), own = support::vector_of<float>(support::many, net.rank()), elsewhere(0);
            while (steps.next(model)) {
                steps.reduce(own, steps.is_root() ? update : elsewhere, rill::aggregate::mean{});
                if (steps.is_root()) steps.end();
            }
        });
        return update;
    };
    CHECK(support::equal_bits(result(tbb_executor(four)), result(rill::serial{})));
}
