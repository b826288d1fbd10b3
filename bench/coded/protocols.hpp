#pragma once

#include "plain_model.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/time.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/dual_code.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// rill's protocols under the models of CodedReduce.
namespace coded_bench {

enum class scheme { star, gradient_code, ring, sgd, coded };
inline constexpr std::array schemes{scheme::star, scheme::gradient_code, scheme::ring, scheme::sgd, scheme::coded};

/// The paper's name of a scheme.
constexpr const char* name(scheme s) {
    constexpr std::array names{"umw", "gc", "rar", "sgd", "cr"};
    return names[static_cast<std::size_t>(s)];
}

struct cluster {
    /// CodedReduce's tree; the other schemes have as many workers and tolerate the same fraction of stragglers
    plain::tree tree;
    double points = 0;
    plain::models models;
    std::size_t entries = 5001;  ///< doubles of a gradient

    int workers() const { return tree.workers(); }
    int stragglers() const { return tree.stragglers * workers() / tree.width; }
    /// What a worker computes.
    double load(scheme s) const {
        if (s == scheme::coded) return tree.load() * points;
        if (s == scheme::gradient_code) return points * (stragglers() + 1) / workers();
        return points / workers();
    }
    /// The tree that gathers: a star is a tree of depth 1.
    plain::tree gathering(scheme s) const {
        if (s == scheme::coded) return tree;
        return {.width = workers(), .depth = 1, .stragglers = s == scheme::star ? 0 : stragglers()};
    }
};

/// The fit to Figures 8 and 9 by `bench_coded_timing fit`, in seconds, where a gradient takes 10 ms.
inline constexpr plain::models fitted{.shift = 1e-5, .tail = 1e-5, .gradient = 0.01, .latency = 2.17e-3};

/// The same for gradients of other lengths: a point takes time, and a gradient too, in proportion to the parameters.
inline plain::models fitted_for(std::size_t parameters) {
    plain::models with = fitted;
    const double longer = static_cast<double>(parameters) / 5001;
    with.shift *= longer;
    with.tail *= longer;
    with.gradient *= longer;
    return with;
}

inline double plain_seconds(plain::simulation& simulate, const cluster& of, scheme s) {
    if (s == scheme::ring) return simulate.ring_seconds(of.workers(), of.load(s));
    return simulate.tree_seconds(of.gathering(s), of.load(s));
}

/// Computing times of the models: those of `shifted_exponential`, and the delay, which it does not have.
struct computing {
    plain::models with;
    std::uint64_t seed = 0;

    rill::duration operator()(rill::rank_t rank, std::uint64_t number, double work) const {
        const auto in_nanoseconds = [](double seconds) { return rill::nanoseconds(std::llround(seconds * 1e9)); };
        const rill::shifted_exponential by_load{in_nanoseconds(with.shift), in_nanoseconds(with.tail), seed};
        rill::duration all = by_load(rank, number, work);
        if (with.delay > 0)
            all = all + rill::shifted_exponential{{}, in_nanoseconds(with.delay), ~seed}(rank, number, 1);
        return all;
    }
};

/// Each rank receives one message at a time, at the rate at which a gradient with its frame takes `models.gradient`.
inline rill::simulated::network network_of(const cluster& of, std::uint64_t seed) {
    constexpr double frame_bytes = 150;
    const double bytes = static_cast<double>(of.entries * sizeof(double)) + frame_bytes;
    const auto card = rill::network_card::single_receive(static_cast<std::uint64_t>(bytes / of.models.gradient));
    return {.latency = rill::nanoseconds(std::llround(of.models.latency * 1e9)),
            .bandwidth = 0,
            .cards = [=](rill::rank_t) { return card; },
            .computing = computing{of.models, seed}};
}

inline constexpr rill::group_options patient{.timeout = rill::seconds(100'000)};
/// When all ranks begin, after all of them have made their groups.
inline constexpr rill::time_point start = rill::time_point{} + rill::seconds(10'000);

/// The value of each element of a rank's contribution, and of the sum at the root.
struct contributions {
    std::function<double(rill::rank_t)> own = [](rill::rank_t) { return 1.0; };
    double sum = 0;  ///< 0: the number of contributors

    static contributions of(const rill::coded_allocation& allocation) {
        const auto own = [&allocation](rill::rank_t rank) {
            double all = 0;  // each point contributes 1
            for (const rill::data_share& share : allocation.shares_of(rank))
                all += share.coefficient * static_cast<double>(share.count());
            return all;
        };
        return {own, static_cast<double>(allocation.points())};
    }
};

inline void require_all(const std::vector<double>& found, double due) {
    for (const double each : found)
        if (!(std::abs(each - due) <= 1e-6 * due))
            throw std::runtime_error("wrong sum: " + std::to_string(each) + ", not " + std::to_string(due));
}

/// Runs rounds one after the other, with `make(workers)` on each rank. Returns the seconds from the start of the first
/// round until the root has the last result. `load(rank)` is in points.
///
/// As in the paper, sending the model takes no time: it is one element long.
template <class Make, class Load>
double rounds_seconds(const cluster& of, int ranks, int rounds, std::uint64_t seed, const contributions& what,
                      Make&& make, Load&& load) {
    double seconds = 0;
    rill::simulated::run(ranks, network_of(of, seed), [&](auto& net) {
        rill::group workers{net, rill::topology::star{}, patient};
        auto steps = make(workers);
        std::vector<double> model(1), gradient(of.entries), sum(of.entries);
        net.sleep_until(start);
        while (steps.next(model)) {
            if (!steps.is_root()) {
                net.compute(load(net.rank()));
                std::fill(gradient.begin(), gradient.end(), what.own(net.rank()));
            }
            const auto done = steps.reduce(gradient, sum);
            if (!steps.is_root()) continue;
            seconds = (net.now() - start).seconds();
            require_all(sum, what.sum != 0 ? what.sum : static_cast<double>(done.contributors - 1));
            if (steps.number() == static_cast<std::uint64_t>(rounds)) steps.end();
        }
    });
    return seconds;
}

/// Codes are made once for each pair of numbers.
inline const rill::gradient_code::dual_code& cyclic_code(int workers, int stragglers) {
    static std::map<std::pair<int, int>, rill::gradient_code::dual_code> made;
    auto known = made.find({workers, stragglers});
    if (known == made.end())
        known = made.emplace(std::pair(workers, stragglers),
                             rill::gradient_code::cyclic_repetition{}.bind(workers, stragglers))
                    .first;
    return known->second;
}

/// The paper's protocols: parents that use a code wait for n - s messages.
inline double gather_seconds(const cluster& of, scheme s, int rounds, std::uint64_t seed) {
    const plain::tree shape = of.gathering(s);
    const rill::topology::regular_tree tree{.width = shape.width, .depth = shape.depth};
    const auto load = [&](rill::rank_t) { return of.load(s); };
    if (s == scheme::star || s == scheme::sgd)
        return rounds_seconds(
            of, tree.size(), rounds, seed, {},
            [&](auto& workers) {
                return rill::rounds{workers, tree, rill::straggler::tolerate{shape.stragglers}};
            },
            load);
    const rill::gradient_code::dual_code& code = cyclic_code(shape.width, shape.stragglers);
    const rill::coded_allocation allocation(tree, code, static_cast<std::size_t>(of.points));
    return rounds_seconds(
        of, tree.size(), rounds, seed, contributions::of(allocation),
        [&](auto& workers) {
            return rill::coded_reduce{workers, tree, code};
        },
        load);
}

inline double ring_seconds(const cluster& of, std::uint64_t seed) {
    double slowest = 0;
    rill::simulated::run(of.workers(), network_of(of, seed), [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}, patient};
        std::vector<double> gradient(of.entries, 1.0), update(of.entries);
        net.sleep_until(start);
        net.compute(of.load(scheme::ring));
        rill::all_reduce(workers, gradient, update);
        slowest = std::max(slowest, (net.now() - start).seconds());
        require_all(update, of.workers());
    });
    return slowest;
}

/// One round that all ranks begin idle, as in the paper.
inline double round_seconds(const cluster& of, scheme s, std::uint64_t seed) {
    return s == scheme::ring ? ring_seconds(of, seed) : gather_seconds(of, s, 1, seed);
}

/// One round of `coded_reduce` with groups of workers that hold the same points. Unlike in the paper, a parent has
/// enough as soon as one worker of each group has sent. The loads are those of the groups.
inline double groups_seconds(const cluster& of, scheme s, std::uint64_t seed) {
    const plain::tree shape = of.gathering(s);
    const rill::topology::regular_tree tree{.width = shape.width, .depth = shape.depth};
    const auto code = rill::gradient_code::repetition_groups{}.bind(shape.width, shape.stragglers);
    const rill::coded_allocation allocation(tree, code, static_cast<std::size_t>(of.points));
    return rounds_seconds(
        of, tree.size(), 1, seed, contributions::of(allocation),
        [&](auto& workers) {
            return rill::coded_reduce{workers, tree, code};
        },
        [&](rill::rank_t rank) { return static_cast<double>(allocation.load_of(rank)); });
}

/// Seconds per round of several in a row, in which a late rank begins its next round late. For gathers only.
inline double sequence_seconds(const cluster& of, scheme s, int rounds) {
    return gather_seconds(of, s, rounds, 1) / rounds;
}

}  // namespace coded_bench
