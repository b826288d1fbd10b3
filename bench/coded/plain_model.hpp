#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

/// The models of CodedReduce (section 3) as a plain Monte Carlo simulation that shares no code with rill; rill's runs
/// of the real protocols are compared with it.
namespace plain {

struct models {
    double shift = 0;     ///< a: seconds a point
    double tail = 0;      ///< 1/mu: mean seconds a point of the exponential part
    double gradient = 0;  ///< t_c: seconds that a gradient occupies the one port of its receiver
    double latency = 0;   ///< seconds that each message takes in addition
    double delay = 0;     ///< mean of an exponential delay of each computation, whatever its load; not in the paper
};

/// A master and (width, depth)-regular layers of workers; each parent does without `stragglers` of its children.
struct tree {
    int width = 1;
    int depth = 1;
    int stragglers = 0;

    int workers() const {
        int all = 0;
        for (int layer = 1, count = width; layer <= depth; ++layer, count *= width) all += count;
        return all;
    }
    /// Theorem 1: the part of the data that each worker keeps.
    double load() const {
        const double q = static_cast<double>(width) / (stragglers + 1);
        double sum = 0;
        for (int layer = 1; layer <= depth; ++layer) sum += std::pow(q, layer);
        return 1 / sum;
    }
};

class simulation {
  public:
    simulation(const models& with, std::uint64_t seed) : with_(with), random_(seed) {}

    /// Seconds until the master has enough, if each worker computes `points`, on leaves and inner nodes alike.
    double tree_seconds(const tree& shape, double points) {
        std::vector<double> ready;  // per rank of a layer, from the leaves up
        for (int layer = shape.depth; layer >= 0; --layer) {
            std::vector<double> above(static_cast<std::size_t>(std::pow(shape.width, layer) + 0.5));
            for (std::size_t i = 0; i < above.size(); ++i) {
                above[i] = layer == 0 ? 0 : computing(points);
                if (layer == shape.depth) continue;
                const auto first = ready.begin() + static_cast<std::ptrdiff_t>(i) * shape.width;
                above[i] = std::max(above[i], gathered({first, first + shape.width}, shape.stragglers));
            }
            ready = std::move(above);
        }
        return ready[0];
    }

    /// Seconds until the slowest of `ranks` has the sum of all on a ring of 2 (ranks - 1) rounds.
    double ring_seconds(int ranks, double points) {
        double slowest = 0;
        for (int i = 0; i < ranks; ++i) slowest = std::max(slowest, computing(points));
        return slowest + 2 * (ranks - 1) * (with_.gradient / ranks + with_.latency);
    }

  private:
    double computing(double points) {
        std::exponential_distribution<double> unit(1);
        double seconds = points * (with_.shift + with_.tail * unit(random_));
        if (with_.delay > 0) seconds += with_.delay * unit(random_);
        return seconds;
    }

    /// The time at which enough have been received through one port, first come, first served.
    double gathered(std::vector<double> ready, int stragglers) const {
        std::sort(ready.begin(), ready.end());
        double free = 0;
        for (std::size_t i = 0; i + static_cast<std::size_t>(stragglers) < ready.size(); ++i)
            free = std::max(free, ready[i] + with_.latency) + with_.gradient;
        return free;
    }

    models with_;
    std::mt19937_64 random_;
};

}  // namespace plain
