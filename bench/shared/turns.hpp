#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Keeps the optimiser from removing a result and its inputs.
inline void keep(const void* result) { asm volatile("" : : "g"(result) : "memory"); }

/// Methods that are timed in turns: each turn runs all of them once, so that drift of the machine affects all alike.
class turns {
  public:
    /// Adds a method. A short one is repeated within a sample until it takes 2 ms; the sample is the mean.
    void add(std::string name, std::function<void()> work) { methods_.push_back({std::move(name), std::move(work)}); }

    bool empty() const { return methods_.empty(); }

    void run(int samples) {
        for (method& each : methods_) each.repeats = repeats_of(each.work);
        for (int turn = 0; turn < samples; ++turn)
            for (method& each : methods_)
                each.seconds.push_back(seconds_of(each.work, each.repeats) / static_cast<double>(each.repeats));
    }

    /// Prints seconds by method, as {"copy": [0.1, 0.11], ...}, one sample per turn, between `before` and `after`.
    void print(const std::string& before = "", const std::string& after = "") const {
        std::printf("%s{", before.c_str());
        for (std::size_t m = 0; m < methods_.size(); ++m) {
            std::printf("%s\"%s\": [", m == 0 ? "" : ", ", methods_[m].name.c_str());
            for (std::size_t i = 0; i < methods_[m].seconds.size(); ++i)
                std::printf("%s%.9g", i == 0 ? "" : ", ", methods_[m].seconds[i]);
            std::printf("]");
        }
        std::printf("}%s\n", after.c_str());
    }

  private:
    struct method {
        std::string name;
        std::function<void()> work;
        int repeats = 1;
        std::vector<double> seconds = {};
    };

    static double seconds_of(const std::function<void()>& work, int repeats) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < repeats; ++i) work();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    /// The number of repetitions, found by calls that also warm the buffers.
    static int repeats_of(const std::function<void()>& work) {
        constexpr double least = 2e-3;
        const double once = std::min(seconds_of(work, 1), seconds_of(work, 1));
        return once >= least ? 1 : 1 + static_cast<int>(least / std::max(once, 1e-7));
    }

    std::vector<method> methods_;
};

}  // namespace bench
