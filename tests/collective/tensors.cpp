#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>

#include "../support/allocations.hpp"
#include "../support/watched.hpp"
#include "cases.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

using namespace cases;
using rill::tensors;

namespace {

using vector = std::vector<float>;

static_assert(rill::OutputTensor<tensors<vector&, std::span<float>>>);
static_assert(rill::OutputTensor<const tensors<vector&, std::span<float>>>, "as a span, it refers");
static_assert(rill::Tensor<tensors<const vector&, vector&>> && !rill::OutputTensor<tensors<const vector&, vector&>>);
static_assert(rill::OutputTensor<std::vector<vector>> && !rill::OutputTensor<const std::vector<vector>>);
static_assert(rill::OutputTensor<const std::vector<std::span<float>>> && rill::OutputTensor<vector[3]>);
static_assert(rill::OutputTensor<tensors<std::vector<vector>&, tensors<vector&>>>, "of any depth");
static_assert(!rill::Tensor<rill::stream<float>>);
static_assert(rill::detail::is_lasting<std::span<vector>> && !rill::detail::is_lasting<std::vector<vector>>,
              "a temporary span refers to tensors that outlive it");

/// The layers of a model, of 3, 0, 40 and 57 elements, not adjacent in memory.
struct layers {
    vector first = vector(3), none, second = vector(40), third = vector(57);
    static constexpr std::size_t size = 100;

    auto all() { return tensors{first, none, second, third}; }
    vector flat() const {
        vector joined = first;
        joined.insert(joined.end(), second.begin(), second.end());
        joined.insert(joined.end(), third.begin(), third.end());
        return joined;
    }
    void assign(const vector& flat) {
        std::copy_n(flat.begin(), 3, first.begin());
        std::copy_n(flat.begin() + 3, 40, second.begin());
        std::copy_n(flat.begin() + 43, 57, third.begin());
    }
};

/// Runs `body(group, fail)` on three ranks; returns what failed.
template <class Body>
std::string on_three(Body body) {
    failures all;
    rill::in_process::run(3, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        body(workers, [&](const std::string& what) { all.add(std::to_string(net.rank()) + ": " + what); });
    });
    return all.text();
}

/// Checks that all payloads that three ranks send in `body(group, memory)` come from the memory that it lists.
template <class Body>
bool sends_in_place(Body body) {
    bool in_place[3] = {};
    support::on_watched_ranks(3, [&](support::watched& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        std::vector<std::span<const float>> memory;
        body(workers, memory);
        const auto counted = net.take(std::span<const std::span<const float>>(memory));
        in_place[net.rank()] = counted.sent > 0 && counted.from_elsewhere == 0;
    });
    return in_place[0] && in_place[1] && in_place[2];
}

}  // namespace

TEST_CASE("several tensors are one operation, in the declared order") {
    CHECK(on_three([](auto& workers, auto fail) {
              const auto mine = dense_input<float>(workers.rank(), layers::size);
              const auto sum = oracle<float>(3, layers::size, rill::aggregate::sum{});
              layers in, out;
              in.assign(mine);
              const auto number = workers.operation_number();
              rill::all_reduce(workers, in.all(), out.all());
              if (workers.operation_number() != number + 1) fail("more than one operation");
              if (out.flat() != sum) fail("all_reduce");
              if (in.flat() != mine) fail("all_reduce changed its input");
              rill::all_reduce(workers, in.all(), in.all());
              if (in.flat() != sum) fail("all_reduce in place");

              vector flat(layers::size);
              in.assign(mine);
              rill::all_reduce(workers, in.all(), flat, rill::aggregate::mean{});
              if (flat != oracle<float>(3, layers::size, rill::aggregate::mean{})) fail("into one vector");
              rill::all_reduce(workers, mine, out.all());
              if (out.flat() != sum) fail("from one vector");
          }) == "");
}

TEST_CASE("a range of tensors is a tensor") {
    CHECK(on_three([](auto& workers, auto fail) {
              const auto mine = dense_input<float>(workers.rank(), layers::size);
              layers in, out;
              in.assign(mine);
              const std::vector<std::span<float>> spans{out.first, out.none, out.second, out.third};
              rill::all_reduce(workers, std::array{std::span(in.first), std::span(in.second), std::span(in.third)},
                               spans);
              if (out.flat() != oracle<float>(3, layers::size, rill::aggregate::sum{})) fail("all_reduce");
          }) == "");
}

TEST_CASE("every collective takes several tensors") {
    CHECK(on_three([](auto& workers, auto fail) {
              const auto mine = dense_input<float>(workers.rank(), layers::size);
              const auto sum = oracle<float>(3, layers::size, rill::aggregate::sum{});
              layers in, out;
              in.assign(mine);
              rill::reduce(workers, in.all(), out.all(), 1);
              if (out.flat() != (workers.rank() == 1 ? sum : vector(layers::size))) fail("reduce");

              layers data;
              if (workers.rank() == 2) data.assign(sum);
              rill::broadcast(workers, data.all(), 2);
              if (data.flat() != sum) fail("broadcast");

              const rill::segment part = rill::split(layers::size, 3, static_cast<std::size_t>(workers.rank()));
              vector left(10), right(part.size() - 10);
              rill::reduce_scatter(workers, in.all(), tensors{left, right});
              const auto expected = std::span(sum).subspan(part.begin, part.size());
              if (!std::equal(left.begin(), left.end(), expected.begin())) fail("reduce_scatter, left");
              if (!std::equal(right.begin(), right.end(), expected.begin() + 10)) fail("reduce_scatter, right");

              rill::all_gather(workers, tensors{left, right}, out.all());
              if (out.flat() != sum) fail("all_gather");
              vector gathered(layers::size);
              rill::all_gather(workers, tensors{left, right}, gathered);
              if (gathered != sum) fail("all_gather into one vector");
          }) == "");
}

TEST_CASE("a compressor takes several tensors") {
    const auto check = [](auto policy) {
        return on_three([policy](auto& workers, auto fail) {
            const auto mine = dense_input<float>(workers.rank(), layers::size);
            layers in, out;
            in.assign(mine);
            vector expected(layers::size);
            auto codec = policy.bind(layers::size), other = policy.bind(layers::size);
            for (int step = 0; step < 3; ++step) {
                rill::all_reduce(workers, in.all(), out.all(), codec);
                workers.resume_at(workers.operation_number() - 1);  // draws the same random numbers
                rill::all_reduce(workers, mine, expected, other);
                if (out.flat() != expected) fail("step " + std::to_string(step));
            }
        });
    };
    CHECK(check(rill::compress::error_feedback{rill::compress::top_k{.count = 7}}) == "");
    CHECK(check(rill::compress::error_feedback{rill::compress::random_mask{.density = 0.2}}) == "");
}

TEST_CASE("non-blocking operations keep the temporary tensor lists that they were given") {
    CHECK(on_three([](auto& workers, auto fail) {
              const auto mine = dense_input<float>(workers.rank(), layers::size);
              layers in, out;
              in.assign(mine);
              vector other(layers::size);
              rill::request first = rill::start_all_reduce(workers, in.all(), out.all());
              rill::request second = rill::start_all_reduce(
                  workers, std::vector{std::span(in.first), std::span(in.second), std::span(in.third)}, other);
              second.get();
              first.get();
              const auto sum = oracle<float>(3, layers::size, rill::aggregate::sum{});
              if (out.flat() != sum || other != sum) fail("all_reduce");
          }) == "");
    static_assert(rill::detail::is_lasting<tensors<vector&, std::span<float>>>);
    static_assert(!rill::detail::is_lasting<tensors<vector&, vector>>);
    static_assert(!rill::detail::is_lasting<std::vector<vector>> && rill::detail::is_lasting<std::vector<vector>&>);
}

TEST_CASE("a rank that contributes nothing is not read") {
    CHECK(on_three([](auto& workers, auto fail) {
              layers in, out;
              in.assign(vector(layers::size, 1));
              vector none;
              const bool idle = workers.rank() == 1;
              const auto receipt =
                  idle ? rill::all_reduce(workers, tensors{none}, out.all(), rill::aggregate::sum{}, {.weight = 0})
                       : rill::all_reduce(workers, in.all(), out.all());
              if (receipt.contributors != 2 || out.flat() != vector(layers::size, 2)) fail("all_reduce");
          }) == "");
}

TEST_CASE("adjacent tensors are sent from their own memory") {
    const auto adjacent = [](auto& workers, auto& memory) {
        static thread_local vector in, out;
        in.assign(100, 1);
        out.assign(100, 0);
        memory = {in, out};
        const std::span<float> from(in), to(out);
        rill::all_reduce(workers, tensors{from.first(40), from.subspan(40, 0), from.subspan(40, 60)},
                         std::vector{to.first(10), to.subspan(10)});
    };
    CHECK(sends_in_place(adjacent));
    const auto apart = [](auto& workers, auto& memory) {
        static thread_local vector in, out;
        in.assign(101, 1);
        out.assign(100, 0);
        memory = {in, out};
        rill::all_reduce(workers, tensors{std::span(in).first(40), std::span(in).subspan(41)}, out);
    };
    CHECK_FALSE(sends_in_place(apart));
}

#ifndef RILL_TEST_SANITIZED
TEST_CASE("several tensors in a steady state allocate nothing") {
    unsigned long allocated = 1;
    rill::simulated::run(3, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        layers in, out;
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.count = 7}}.bind(layers::size);
        const auto step = [&] {
            rill::all_reduce(workers, in.all(), out.all());
            rill::all_reduce(workers, in.all(), out.all(), codec);
        };
        for (int i = 0; i < 300; ++i) step();
        rill::barrier(workers);
        const unsigned long before = all_allocations();
        rill::barrier(workers);
        for (int i = 0; i < 10; ++i) step();
        rill::barrier(workers);
        if (net.rank() == 0) allocated = all_allocations() - before;
        rill::barrier(workers);  // no rank closes the group before all are done
    });
    CHECK(allocated == 0);
}
#endif
