// The data of rounds: sizes, element types, weights and codings.
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/row_top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::star;
using rill::topology::tree;
using namespace rill::straggler;

TEST_CASE("rounds: of zero elements, and of one rank") {
    for (const int ranks : {1, 2, 5}) {
        std::uint64_t rounds = 0;
        rill::simulated::run(ranks, {}, [&](endpoint& net) {
            rill::group workers{net, star{}};
            rill::rounds steps{workers, tree{2}};
            std::vector<double> model, update;
            while (steps.next(model)) {
                const auto r = steps.reduce(std::vector<double>{}, update);
                if (!steps.is_root()) continue;
                CHECK(r.contributors == ranks);
                if (++rounds == 3) steps.end();
            }
        });
        CHECK(rounds == 3);
    }
    rill::simulated::run(1, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}, fastest{1}};
        std::vector<double> model(2), update(3, -1.0);
        CHECK(steps.next(model));
        const auto r = steps.reduce(std::vector<double>{2, 4, 8}, update, rill::aggregate::mean{}, {.weight = 2});
        CHECK(update == std::vector<double>{1, 2, 4});
        CHECK(r.wire.messages_sent == 0);
        CHECK(steps.was_in());
    });
}

TEST_CASE("rounds: state and contributions of different types and sizes, in place, of several tensors") {
    rill::simulated::run(5, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, tree{2}};
        std::vector<std::int32_t> a(3), b(4);
        auto model = rill::tensors(a, b);
        std::vector<double> first(2), second(5);
        while (steps.next(model)) {
            CHECK(a == std::vector<std::int32_t>(3, static_cast<std::int32_t>(steps.number()) - 1));
            CHECK(b == std::vector<std::int32_t>(4, 2 * static_cast<std::int32_t>(steps.number()) - 2));
            first.assign(2, net.rank());
            second.assign(5, 1);
            auto own = rill::tensors(first, second);
            steps.reduce(own, own);
            if (!steps.is_root()) {
                CHECK(first == std::vector<double>(2, net.rank()));  // not touched
                continue;
            }
            CHECK(first == std::vector<double>(2, 10));
            CHECK(second == std::vector<double>(5, 5));
            a.assign(3, static_cast<std::int32_t>(steps.number()));
            b.assign(4, 2 * static_cast<std::int32_t>(steps.number()));
            if (steps.number() == 3) steps.end();
        }
    });
}

TEST_CASE("rounds: a rank that contributes nothing sends nothing, and a root that does so needs no input") {
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, tree{2}};
        std::vector<double> model(3), update(1000, -1);
        while (steps.next(model)) {
            // Rank 0 is the root without input or weight; rank 2, below rank 1, contributes nothing.
            const bool is_in = net.rank() == 1 || net.rank() == 3;
            const std::vector<double> own(steps.is_root() ? 0 : 1000, 1.0);
            const auto r = steps.reduce(own, update, rill::aggregate::sum{}, {.weight = is_in ? 1.0 : 0.0});
            if (net.rank() == 2) CHECK(r.wire.bytes_sent < 500);
            if (!steps.is_root()) continue;
            CHECK(r.contributors == 2);
            CHECK(update == std::vector<double>(1000, 2));
            steps.end();
        }
    });
    // In a round without contributions the result is the identity.
    rill::simulated::run(2, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        std::vector<double> model(3), update(2, -1);
        while (steps.next(model)) {
            const auto r = steps.reduce(std::vector<double>(2, 1), update, rill::aggregate::mean{}, {.weight = 0});
            if (!steps.is_root()) continue;
            CHECK(r.contributors == 0);
            CHECK(update == std::vector<double>(2, 0));
            steps.end();
        }
    });
}

TEST_CASE("rounds: values may be rounded for sending, within the bound of the receipt") {
    for (const int arity : {1, 4})
        rill::simulated::run(5, {}, [&](endpoint& net) {
            rill::group workers{net, star{}};
            rill::rounds steps{workers, tree{arity}};
            constexpr std::size_t dimension = 50;
            auto codec =
                rill::compress::encoded{rill::compress::keep_all{}, rill::compress::bf16{}}.bind<float>(dimension);
            std::vector<float> model(1), own(dimension), update(dimension);
            while (steps.next(model)) {
                std::vector<double> exact(dimension);
                for (int r = 0; r < 5; ++r)
                    for (std::size_t i = 0; i < dimension; ++i) {
                        const float x = std::sin(static_cast<float>(r * 100) + static_cast<float>(i));
                        exact[i] += x;
                        if (r == net.rank()) own[i] = x;
                    }
                const auto r = steps.reduce(own, update, codec);
                if (!steps.is_root()) continue;
                double error = 0;
                for (std::size_t i = 0; i < dimension; ++i)
                    error += std::pow(exact[i] - static_cast<double>(update[i]), 2);
                CHECK(std::sqrt(error) <= r.error_bound + 1e-5);
                CHECK(r.error_bound > 0);
                CHECK(r.error_bound < 0.1);
                steps.end();
            }
        });
}

TEST_CASE("rounds: entries that come in whole rows travel by rows, to the same bits") {
    constexpr std::size_t dimension = 200, columns = 7;
    const auto sum_with = [](auto indices) {
        std::vector<float> sum(dimension);
        rill::simulated::run(5, {}, [&](endpoint& net) {
            rill::group workers{net, star{}};
            rill::rounds steps{workers, tree{2}};
            auto codec = rill::compress::error_feedback{
                rill::compress::encoded{
                    rill::compress::row_top_k{.columns = columns, .count = 3}, rill::compress::raw{},
                    indices}}.bind(dimension);
            std::vector<float> model(1), own(dimension), update(dimension);
            while (steps.next(model)) {
                for (std::size_t i = 0; i < dimension; ++i)
                    own[i] = std::sin(static_cast<float>(net.rank() * 100) + static_cast<float>(i));
                steps.reduce(own, update, codec);
                if (!steps.is_root()) continue;
                sum = update;
                if (steps.number() == 4) steps.end();
            }
        });
        return sum;
    };
    const std::vector<float> by_rows = sum_with(rill::compress::whole_rows{columns});
    CHECK(by_rows == sum_with(rill::compress::raw_indices{}));
    CHECK(std::count(by_rows.begin(), by_rows.end(), 0.0F) < 180);
}

TEST_CASE("rounds: threads under load, whatever the policies") {
    const auto play = [](const auto& shape, const auto&... policies) {
        std::atomic<int> told_in = 0, in_results = 0;
        rill::in_process::run(5, [&](auto& net) {
            rill::group workers{net, star{}, {.timeout = rill::seconds(30)}};
            rill::rounds steps{workers, shape, policies...};
            std::vector<std::int64_t> model(3000, 1), own(3000), update(3000);
            bool has_sent = false;
            while (steps.next(model)) {
                if (has_sent && steps.was_in()) ++told_in;
                const auto number = static_cast<std::int64_t>(steps.number());
                CHECK(model == std::vector<std::int64_t>(3000, number));
                own.assign(3000, (std::int64_t{1} << net.rank()) + (number << 16));
                if (net.rank() == 3 && number % 3 == 0) net.sleep_until(net.now() + rill::microseconds(500));
                const auto r = steps.reduce(own, update);
                has_sent = true;
                if (!steps.is_root()) continue;
                std::int64_t expected = 0;
                for (const rill::contributor& each : r.in)
                    expected += (std::int64_t{1} << each.rank) + ((number - each.age) << 16);
                CHECK(update == std::vector<std::int64_t>(3000, expected));
                in_results += r.contributors;
                model.assign(3000, number + 1);
                if (number == 150) steps.end();
            }
            if (has_sent && steps.was_in()) ++told_in;
        });
        return std::pair(told_in.load(), in_results.load());
    };
    CHECK(play(tree{4}) == std::pair(750, 750));
    const auto [told, in] = play(tree{2}, tolerate{1});
    CHECK(told == in);
    const auto [told_late, in_late] = play(tree{4}, fastest{2}, bounded{2});
    CHECK(told_late == in_late);
    const auto [told_until, in_until] = play(tree{4}, until{.after = rill::microseconds(200)}, unbounded{});
    CHECK(told_until == in_until);
}
