// Ranks whose gradients take random times, and a plain Monte Carlo of how they make rounds, without messages.
#pragma once

#include <rill/core/random.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rna_bench {

/// How long a gradient takes, in ms.
struct task {
    enum class law { uniform, lognormal };

    law kind = law::uniform;
    double from = 10;  ///< uniform: the least; lognormal: the mean
    double to = 60;    ///< uniform: the most; lognormal: the standard deviation
    double least = 0;  ///< a lognormal time is drawn again until it is between these two
    double most = std::numeric_limits<double>::infinity();
    double second_half = 0;  ///< what the ranks of the second half take more

    double draw(rill::random_sequence& random, int rank, int ranks) const {
        const double more = 2 * rank >= ranks ? second_half : 0;
        const auto uniform_draw = [&] { return (static_cast<double>(random.bits()) + 0.5) * 0x1p-32; };
        if (kind == law::uniform) return from + (to - from) * uniform_draw() + more;
        const double variance = std::log(1 + to * to / (from * from));
        for (;;) {
            const double normal =
                std::sqrt(-2 * std::log(uniform_draw())) * std::cos(2 * 3.14159265358979 * uniform_draw());
            const double ms = std::exp(std::log(from) - variance / 2 + std::sqrt(variance) * normal);
            if (least <= ms && ms <= most) return ms + more;
        }
    }
};

/// What rounds did: per second, gradients per second, contributors per round, the median of their length in ms.
struct pace {
    double rounds = 0, gradients = 0, contributors = 0, median_ms = 0;
};

inline double median(std::vector<double> of) {
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle;
}

/// Rounds that take no time start when the first of `probes` ranks drawn at random has a gradient that no round has
/// taken (0: when all have one). A rank goes on with the next gradient; if `waits`, it waits for the round of a
/// gradient that it has begun in that round.
inline pace play(const task& of, int ranks, int probes, bool waits, int rounds, std::uint64_t seed) {
    rill::random_sequence random(rill::random_key{seed});
    struct worker {
        double ready = 0;  ///< when its next gradient is
        int began_in = 0;  ///< the round in which it has begun
        int waiting = 0;   ///< gradients that no round has taken
    };
    std::vector<worker> all(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)].ready = of.draw(random, r, ranks);
    std::vector<double> lengths;
    double now = 0, contributors = 0, gradients = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<int> order(static_cast<std::size_t>(ranks));
        for (int r = 0; r < ranks; ++r) order[static_cast<std::size_t>(r)] = r;
        const auto ready_at = [&](int r) {
            const worker& each = all[static_cast<std::size_t>(r)];
            return each.waiting > 0 ? now : each.ready;
        };
        double start = probes == 0 ? now : std::numeric_limits<double>::infinity();
        if (probes == 0)
            for (const int r : order) start = std::max(start, ready_at(r));
        for (int drawn = 0; drawn < probes; ++drawn) {
            const auto left = static_cast<std::uint64_t>(ranks - drawn);
            std::swap(order[static_cast<std::size_t>(drawn)],
                      order[static_cast<std::size_t>(drawn) + random.below(left)]);
            start = std::min(start, ready_at(order[static_cast<std::size_t>(drawn)]));
        }
        lengths.push_back(start - now);
        now = start;
        for (int r = 0; r < ranks; ++r) {
            worker& each = all[static_cast<std::size_t>(r)];
            bool rests = false;
            while (each.ready <= now && !rests) {
                ++each.waiting;
                rests = waits && each.began_in == round;
                each.began_in = round;
                if (!rests) each.ready += of.draw(random, r, ranks);
            }
            if (rests) each.ready = now + of.draw(random, r, ranks), each.began_in = round + 1;
            contributors += each.waiting > 0 ? 1 : 0;
            gradients += each.waiting;
            each.waiting = 0;
        }
    }
    return {rounds / now * 1000, gradients / now * 1000, contributors / rounds, median(lengths)};
}

}  // namespace rna_bench
