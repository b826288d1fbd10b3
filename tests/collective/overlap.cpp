#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace {

using rill::contract_violation;
using rill::memory_layout;
using rill::detail::have_apart;
using rill::detail::may_share;
using rill::detail::sharing;

/// The error that rank 1 of three gets from `body(group)` before anything is sent; the other ranks call nothing.
template <class Body>
std::string refused(Body body) {
    std::string told;
    rill::simulated::run(3, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        if (net.rank() == 1) told = message_of<contract_violation>([&] { body(workers); });
    });
    return told;
}

/// A `rows` x `columns` block, from element `from` on, of a matrix whose four columns are stored one after the other.
memory_layout block(const std::array<float, 16>& all, std::size_t from, std::size_t rows, std::size_t columns) {
    return {&all[from], sizeof(float), sizeof(float), rows, 4 * sizeof(float), columns};
}

bool is_refused(const std::string& told) { return has(told, "overlap in part"); }

}  // namespace

TEST_CASE("overlap: a collective refuses an input and an output that overlap in part") {
    std::vector<float> x(40, 1.0F);
    const std::span<const float> in(x.data(), 30);
    for (const std::size_t from : {std::size_t{1}, std::size_t{10}}) {
        const std::span<float> out(x.data() + from, 30);
        CHECK(is_refused(refused([&](auto& g) { rill::all_reduce(g, in, out); })));
        CHECK(is_refused(refused([&](auto& g) { rill::start_all_reduce(g, in, out).get(); })));
        CHECK(is_refused(refused([&](auto& g) { rill::reduce(g, in, out, 1); })));
        CHECK(is_refused(refused([&](auto& g) { rill::start_reduce(g, in, out, 1).get(); })));
        CHECK(is_refused(refused([&](auto& g) { rill::all_gather(g, in.subspan(15, 10), out); })));
        CHECK(is_refused(refused([&](auto& g) {
            auto codec = rill::compress::top_k{.density = 0.5}.bind(30);
            rill::all_reduce(g, in, out, codec);
        })));
        CHECK(has(refused([&](auto& g) { rill::reduce_scatter(g, in, std::span(x).subspan(from, 10)); }),
                  "reduce_scatter: input and output have memory in common"));
    }
    CHECK(x == std::vector<float>(40, 1.0F));
}

TEST_CASE("overlap: several tensors are compared with each other piece by piece") {
    std::vector<float> a(10, 1.0F), b(10, 1.0F), c(10, 1.0F);
    CHECK(is_refused(refused([&](auto& g) { rill::all_reduce(g, rill::tensors{a, b}, rill::tensors{b, a}); })));
    CHECK(is_refused(refused([&](auto& g) { rill::all_reduce(g, rill::tensors{a, b}, rill::tensors{c, a}); })));
    CHECK(is_refused(refused([&](auto& g) {
        rill::start_all_reduce(g, rill::tensors{a, b}, rill::tensors{c, a}).get();
    })));
    std::vector<std::span<float>> in{a, b}, out{b, c};
    CHECK(is_refused(refused([&](auto& g) { rill::all_reduce(g, in, out); })));
    CHECK(have_apart(rill::tensors{a, b}, rill::tensors{a, c}, sharing::same_coordinates));
    CHECK(have_apart(a, rill::tensors{std::span(a).first(3), std::span(a).subspan(3)}, sharing::same_coordinates));
}

TEST_CASE("overlap: a round refuses an overlap at the root, and ends on all ranks") {
    std::string told;
    rill::simulated::run(2, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        rill::rounds steps(workers, rill::topology::star{});
        std::vector<float> x(9, 1.0F), state(1);
        const std::span all(x);
        const auto round = [&](std::span<float> output) {
            steps.next(std::span(state));
            steps.reduce(all.first(8), output);
        };
        round(all.first(8));
        if (net.rank() == 0) {
            CHECK(x == std::vector<float>{2, 2, 2, 2, 2, 2, 2, 2, 1});
            told = message_of<contract_violation>([&] { round(all.last(8)); });
        } else {
            const auto go_on = [&] {
                while (true) round(all.first(8));
            };
            CHECK_THROWS_AS(go_on(), rill::peer_failure);
        }
    });
    CHECK(is_refused(told));
}

TEST_CASE("overlap: in place and disjoint memory are allowed") {
    rill::simulated::run(3, {}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> x(60, 1.0F);
        const std::span all(x);
        rill::all_reduce(workers, all.first(30), all.last(30));
        CHECK(x[59] == 3);
        rill::all_reduce(workers, all.first(30), all.first(30));
        CHECK(x[0] == 3);
        rill::all_gather(workers, all.subspan(static_cast<std::size_t>(10 * net.rank()), 10), all.first(30));
        CHECK(x[29] == 3);
    });
}

TEST_CASE("overlap: interleaved tensors do not overlap") {
    std::array<float, 16> all{};
    CHECK(!may_share(block(all, 0, 1, 4), block(all, 1, 1, 4)));   // rows
    CHECK(!may_share(block(all, 0, 2, 4), block(all, 2, 2, 4)));   // upper and lower half
    CHECK(may_share(block(all, 0, 2, 2), block(all, 5, 2, 2)));    // a corner
    CHECK(!may_share(block(all, 0, 2, 2), block(all, 10, 2, 2)));  // none
    CHECK(may_share(block(all, 0, 3, 3), block(all, 8, 1, 1)));
    CHECK(!may_share(block(all, 0, 2, 4), block(all, 3, 1, 1)));
    CHECK(!may_share(block(all, 4, 0, 4), block(all, 0, 4, 4)));

    const memory_layout down{&all[15], sizeof(float), -static_cast<std::ptrdiff_t>(sizeof(float)), 8};
    CHECK(may_share(down, memory_layout::of(std::span<const float>(all).subspan(8, 1))));
    CHECK(!may_share(down, memory_layout::of(std::span<const float>(all).first(8))));
}
