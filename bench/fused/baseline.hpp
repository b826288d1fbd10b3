// What the fused all_reduce among threads of one process is compared with: the limits of memory and of waiting, and the
// straightforward algorithm.
#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fused {

/// Part `i` of [0, n), divided into equal parts.
struct part {
    std::size_t begin, end;

    part(std::size_t n, int parts, int i)
        : begin(n * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts)),
          end(n * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(parts)) {}
};

/// a = b + 3 c.
inline void triad(float* a, const float* b, const float* c, part of) {
    for (std::size_t i = of.begin; i < of.end; ++i) a[i] = b[i] + 3.0F * c[i];
}

/// Reads all entries, and returns a value that depends on them.
inline float read(const float* x, part of) {
    constexpr std::size_t block = 64;
    float sums[block] = {};
    std::size_t i = of.begin;
    for (; i + block <= of.end; i += block)
        for (std::size_t j = 0; j < block; ++j) sums[j] += x[i + j];
    float sum = 0;
    for (const float each : sums) sum += each;
    for (; i < of.end; ++i) sum += x[i];
    return sum;
}

/// x = 2 x: writes back what it reads.
inline void scale(float* x, part of) {
    for (std::size_t i = of.begin; i < of.end; ++i) x[i] *= 2.0F;
}

/// Two threads that answer each other with one word each, and never sleep.
class ping_pong {
  public:
    void play(int rank) {
        const std::uint64_t next = turns_[rank].done.load(std::memory_order_relaxed) + 1;
        if (rank == 0) turns_[0].done.store(next, std::memory_order_release);
        while (turns_[1 - rank].done.load(std::memory_order_acquire) != next) pause();
        if (rank == 1) turns_[1].done.store(next, std::memory_order_release);
    }

  private:
    struct alignas(128) turn {
        std::atomic<std::uint64_t> done{0};
    };
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    turn turns_[2];
};

/// Each thread sums its part pass by pass, one input after the other; then all copy all parts.
class pass_by_pass {
  public:
    explicit pass_by_pass(int ranks)
        : inputs_(static_cast<std::size_t>(ranks)), outputs_(static_cast<std::size_t>(ranks)), all_(ranks) {}

    void all_reduce(int rank, const float* input, float* output, std::size_t n) {
        const int ranks = static_cast<int>(inputs_.size());
        inputs_[static_cast<std::size_t>(rank)] = input;
        outputs_[static_cast<std::size_t>(rank)] = output;
        all_.arrive_and_wait();
        const part own(n, ranks, rank);
        for (std::size_t i = own.begin; i < own.end; ++i) output[i] = inputs_[0][i];
        for (std::size_t k = 1; k < inputs_.size(); ++k)
            for (std::size_t i = own.begin; i < own.end; ++i) output[i] += inputs_[k][i];
        all_.arrive_and_wait();
        for (int k = 0; k < ranks; ++k) {
            const part of(n, ranks, k);
            const float* const from = outputs_[static_cast<std::size_t>(k)];
            if (k != rank)
                for (std::size_t i = of.begin; i < of.end; ++i) output[i] = from[i];
        }
        all_.arrive_and_wait();
    }

  private:
    std::vector<const float*> inputs_;
    std::vector<float*> outputs_;
    std::barrier<> all_;
};

}  // namespace fused
