#include <rill/collective/group.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::regular_tree;
using rill::topology::star;

namespace {

constexpr std::size_t n = 300;

/// The gradient of a partition.
template <class T>
std::vector<T> gradient_of(int partition) {
    std::vector<T> g(n);
    for (std::size_t i = 0; i < n; ++i)
        g[i] = static_cast<T>(static_cast<int>((i * 31 + static_cast<std::size_t>(partition) * 17) % 101) - 50) / T{16};
    return g;
}

/// The message of a worker of a code.
template <class T, class Code>
std::vector<T> coded_gradient(const Code& code, int worker) {
    std::vector<T> sum(n);
    for (std::size_t j = 0; j < code.partitions_of(worker).size(); ++j) {
        const auto g = gradient_of<T>(code.partitions_of(worker)[j]);
        for (std::size_t i = 0; i < n; ++i) sum[i] += static_cast<T>(code.coefficients_of(worker)[j]) * g[i];
    }
    return sum;
}

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    return std::sqrt(sum);
}

template <class T>
std::vector<T> whole_gradient(int partitions) {
    std::vector<T> sum(n);
    for (int p = 0; p < partitions; ++p)
        for (std::size_t i = 0; i < n; ++i) sum[i] += gradient_of<T>(p)[i];
    return sum;
}

struct outcome {
    rill::round_receipt receipt;
    double distance = 0;  ///< relative distance from the full gradient
};

/// One round on a star without the workers in `lost`, which never finish computing.
template <class T, class Code>
outcome reduce_without(const Code& code, const std::vector<int>& lost, const rill::coded_options& options = {}) {
    outcome seen;
    const rill::simulated::network net{
        .latency = rill::microseconds(10), .computing = [&](rill::rank_t rank, std::uint64_t, double) {
            return std::count(lost.begin(), lost.end(), rank - 1) != 0 ? rill::seconds(20) : rill::milliseconds(1);
        }};
    rill::simulated::run(code.workers() + 1, net, [&](endpoint& end) {
        rill::group workers{end, star{}, {.timeout = rill::seconds(60)}};
        rill::coded_reduce steps{workers, star{}, code, options};
        std::vector<T> model(3), gradient(n);
        while (steps.next(model)) {
            rill::compute(end, 1);
            const auto own = steps.is_root() ? std::vector<T>{} : coded_gradient<T>(steps.code(), end.rank() - 1);
            const auto r = steps.reduce(own, gradient);
            if (!steps.is_root()) continue;
            seen = {r, distance(gradient, whole_gradient<T>(code.partitions()))};
            steps.end();
        }
    });
    return seen;
}

}  // namespace

TEST_CASE("coded_reduce: on a star the root has the full gradient, whoever is lost") {
    const auto code = rill::gradient_code::cyclic_mds{}.bind(6, 2);
    for (int a = 0; a < 6; ++a)
        for (int b = a + 1; b < 6; ++b) {
            const outcome seen = reduce_without<double>(code, {a, b});
            CHECK(seen.distance < 1e-12);
            CHECK(seen.receipt.contributors == 4);
            CHECK(seen.receipt.missing == std::vector<rill::rank_t>{a + 1, b + 1});
            CHECK(seen.receipt.error_bound == 0);
            CHECK(seen.receipt.decoding_error == 0);
        }
    CHECK(reduce_without<float>(code, {1, 4}).distance < 1e-4);
}

TEST_CASE("coded_reduce: one member of each group is enough, and gives the same bits whoever it is") {
    const auto code = rill::gradient_code::repetition_groups{}.bind(6, 2);
    CHECK(reduce_without<float>(code, {0, 1, 3, 5}).distance == reduce_without<float>(code, {2, 4}).distance);
    CHECK(reduce_without<float>(code, {0, 1, 3, 5}).receipt.contributors == 2);
}

TEST_CASE("coded_reduce: the receipt bounds the rounding error") {
    const auto code = rill::gradient_code::cyclic_mds{}.bind(6, 2);
    for (const rill::coding values : {rill::compress::bf16{}.coding(), rill::compress::qsgd{8, 64}.coding(),
                                      rill::compress::qsgd{4, 64}.coding()}) {
        const outcome seen = reduce_without<double>(code, {0, 3}, {.values = values});
        CHECK(seen.distance > 1e-6);
        CHECK(seen.distance <= seen.receipt.error_bound);
        CHECK(seen.receipt.error_bound < 50 * seen.distance);
    }
}

TEST_CASE("coded_reduce: too few contributions are an error that names the contributors") {
    const auto code = rill::gradient_code::cyclic_mds{}.bind(4, 1);
    const auto too_few = [&](std::vector<int> lost) -> std::string {
        std::string said;
        const rill::simulated::network net{.computing = [&](rill::rank_t rank, std::uint64_t, double) {
            return std::count(lost.begin(), lost.end(), rank - 1) != 0 ? rill::seconds(100) : rill::milliseconds(1);
        }};
        rill::simulated::run(5, net, [&](endpoint& end) {
            rill::group workers{end, star{}, {.timeout = rill::seconds(8)}};
            rill::coded_reduce steps{workers, star{}, code};
            std::vector<float> model(3), gradient(n);
            try {
                while (steps.next(model)) {
                    rill::compute(end, 1);
                    steps.reduce(std::vector<float>(n), gradient);
                }
            } catch (const rill::error& e) {
                if (end.rank() == 0) said = e.what();
                CHECK(e.culprit() == 2);
            }
        });
        return said;
    };
    CHECK(too_few({1, 3}) ==
          "rill: round 1: rank 0 waited 8.000000 s for rank 2; rank 0 has contributions of its children 1, 3, which is "
          "not enough");
}

TEST_CASE("coded_reduce: by choice, the best approximation that the contributions allow") {
    const auto code = rill::gradient_code::cyclic_mds{}.bind(6, 2);
    const outcome seen = reduce_without<double>(code, {0, 2, 4}, {.approximate_after = rill::milliseconds(50)});
    CHECK(seen.receipt.contributors == 3);
    CHECK(seen.receipt.decoding_error > 0.1);
    // Per coordinate: |Σ (c_p - 1) g_p| ≤ ‖c - 1‖ ‖g‖.
    double all = 0;
    for (int p = 0; p < 6; ++p) all += std::pow(distance(gradient_of<double>(p), std::vector<double>(n)), 2);
    CHECK(seen.distance <= seen.receipt.decoding_error * std::sqrt(all));
    CHECK(seen.distance > 0);
    const outcome none =
        reduce_without<double>(code, {0, 1, 2, 3, 4, 5}, {.approximate_after = rill::milliseconds(50)});
    CHECK(none.receipt.contributors == 0);
    CHECK(none.receipt.decoding_error == std::sqrt(6.0));
}

namespace {

/// The coded gradient of a worker of a tree over points.
template <class T>
std::vector<T> coded_gradient(std::span<const rill::data_share> shares) {
    std::vector<T> sum(n);
    for (const rill::data_share& share : shares)
        for (std::size_t point = share.first; point < share.last; ++point) {
            const auto g = gradient_of<T>(static_cast<int>(point));
            for (std::size_t i = 0; i < n; ++i) sum[i] += static_cast<T>(share.coefficient) * g[i];
        }
    return sum;
}

/// Draws at most `s` children of each parent; the ranks below a lost child do not matter.
std::vector<rill::rank_t> some_lost(const regular_tree& tree, int s, std::uint64_t seed) {
    rill::random_sequence draw(rill::random_key{seed}.derive(9));
    std::vector<rill::rank_t> lost;
    for (rill::rank_t parent = 0; tree.children(tree.size(), parent) != 0; ++parent) {
        std::vector<int> children(static_cast<std::size_t>(tree.width));
        for (int i = 0; i < tree.width; ++i) children[static_cast<std::size_t>(i)] = i;
        for (int i = 0; i < s; ++i) {
            const auto rest = static_cast<std::uint64_t>(tree.width - i);
            std::swap(children[static_cast<std::size_t>(i)], children[static_cast<std::size_t>(i) + draw.below(rest)]);
            lost.push_back(tree.child(tree.size(), parent, children[static_cast<std::size_t>(i)]));
        }
    }
    return lost;
}

template <class T, class Code>
double error_on_tree(const regular_tree& tree, const Code& code, std::size_t points,
                     const std::vector<rill::rank_t>& lost) {
    const rill::coded_allocation allocation(tree, code, points);
    double error = 1e9;
    const rill::simulated::network net{
        .latency = rill::microseconds(10), .computing = [&](rill::rank_t rank, std::uint64_t, double) {
            return std::count(lost.begin(), lost.end(), rank) != 0 ? rill::seconds(20) : rill::milliseconds(1);
        }};
    rill::simulated::run(tree.size(), net, [&](endpoint& end) {
        rill::group workers{end, star{}, {.timeout = rill::seconds(60)}};
        rill::coded_reduce steps{workers, tree, code};
        std::vector<T> model(3), gradient(n);
        while (steps.next(model)) {
            rill::compute(end, 1);
            const auto r = steps.reduce(coded_gradient<T>(allocation.shares_of(end.rank())), gradient);
            if (!steps.is_root()) continue;
            CHECK(r.elapsed < rill::milliseconds(5));
            error = distance(gradient, whole_gradient<T>(static_cast<int>(points)));
            steps.end();
        }
    });
    return error;
}

}  // namespace

TEST_CASE("coded_reduce: on a tree the root has the full gradient, whether leaves or inner ranks are lost") {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const regular_tree three{3, 2}, four{4, 2}, deep{3, 3};
        CHECK(error_on_tree<double>(three, rill::gradient_code::cyclic_mds{}.bind(3, 1), 47,
                                    some_lost(three, 1, seed)) < 1e-10);
        CHECK(error_on_tree<double>(four, rill::gradient_code::cyclic_repetition{}.bind(4, 2), 60,
                                    some_lost(four, 2, seed)) < 1e-8);
        CHECK(error_on_tree<float>(four, rill::gradient_code::fractional_repetition{}.bind(4, 1), 61,
                                   some_lost(four, 1, seed)) < 1e-2);
        CHECK(error_on_tree<double>(deep, rill::gradient_code::repetition_groups{}.bind(3, 2), 100,
                                    some_lost(deep, 2, seed)) < 1e-10);
    }
}

TEST_CASE("coded_reduce: threads, many steps, and sleepers that change") {
    const regular_tree tree{3, 2};
    const auto code = rill::gradient_code::cyclic_mds{}.bind(3, 1);
    const rill::coded_allocation allocation(tree, code, 60);
    const auto whole = whole_gradient<double>(60);
    rill::in_process::run(tree.size(), [&](auto& net) {
        rill::group workers{net, star{}, {.timeout = rill::seconds(60)}};
        rill::coded_reduce steps{workers, tree, code};
        const auto own = coded_gradient<double>(allocation.shares_of(net.rank()));
        std::vector<double> model(3), gradient(n);
        while (steps.next(model)) {
            // One sleeper per parent, another one in each round.
            const bool sleeps = net.rank() != 0 && (net.rank() - 1) % 3 == static_cast<int>(steps.number() % 3);
            if (sleeps) net.sleep_until(net.now() + rill::milliseconds(5));
            const auto r = steps.reduce(own, gradient);
            if (!steps.is_root()) continue;
            CHECK(distance(gradient, whole) < 1e-9);
            CHECK(r.contributors >= 6);
            if (steps.number() == 40) steps.end();
        }
    });
}

/// Seven ranks run three steps on a tree, and one dies after so many messages. Returns the error of a survivor that
/// blames another survivor, if there is one.
std::string wrongly_blamed(int victim, std::uint64_t messages) {
    std::string wrong;
    const rill::fault_plan faults{
        .faults = {rill::faults::kill(victim).after(messages), rill::faults::delay_up_to(rill::microseconds(40))}};
    rill::simulated::run(7, {.faults = faults}, [&](endpoint& net) {
        try {
            rill::group workers{net, rill::topology::tree{}, {.timeout = rill::milliseconds(20)}};
            rill::coded_reduce steps{workers, regular_tree{2, 2},
                                     rill::gradient_code::fractional_repetition{}.bind(2, 1)};
            std::vector<float> state(n), own(n, 1), sum(n);
            for (int step = 0; step < 3 || !steps.is_root(); ++step) {
                if (!steps.next(state)) return;
                steps.reduce(own, sum);
            }
        } catch (const rill::error& failed) {
            if (failed.culprit() != victim && failed.culprit() != rill::no_rank) wrong = failed.what();
        }
    });
    return wrong;
}

TEST_CASE("coded_reduce: where a rank dies while the others agree on the rounds, no survivor is blamed") {
    for (int victim = 0; victim < 7; ++victim)
        for (std::uint64_t messages = 0; messages < 14; ++messages) {
            CAPTURE(victim);
            CAPTURE(messages);
            CHECK(wrongly_blamed(victim, messages) == "");
        }
}

TEST_CASE("coded_reduce: a tree that does not fit the code, and another code on one rank, are refused") {
    rill::in_process::run(4, [](auto& net) {
        rill::group workers{net, star{}, {.timeout = rill::seconds(30)}};
        const auto make = [&](int n_workers, int lost) {
            rill::coded_reduce steps{workers, star{}, rill::gradient_code::cyclic_mds{}.bind(n_workers, lost)};
        };
        CHECK_THROWS_AS(make(4, 1), rill::contract_violation);
        CHECK_NOTHROW(make(3, 1));
        CHECK_THROWS_AS(make(3, net.rank() == 2 ? 0 : 1), rill::mismatch);
    });
}
