// The sum of `dense` in tools/compile_seconds.py with the standard library alone: each of four threads sums a part,
// then copies the others' parts. No message, no deadline, no error. The exit code says whether the sums are right.
#include <algorithm>
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

int main() {
    constexpr std::size_t ranks = 4;
    constexpr std::size_t part = 250;
    const std::vector<float> ones(ranks * part, 1.0F);
    const std::vector<std::vector<float>> in(ranks, ones);
    std::vector<std::vector<float>> out(ranks, std::vector<float>(ranks * part));
    std::barrier all_here(static_cast<std::ptrdiff_t>(ranks));
    const auto work = [&](std::size_t rank) {
        for (const auto& of_one : in)
            for (std::size_t at = rank * part; at != (rank + 1) * part; ++at) out[rank][at] += of_one[at];
        all_here.arrive_and_wait();
        for (std::size_t other = 0; other != ranks; ++other) {
            const auto first = static_cast<std::ptrdiff_t>(other * part);
            if (other != rank) std::copy_n(out[other].begin() + first, part, out[rank].begin() + first);
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t rank = 0; rank != ranks; ++rank) threads.emplace_back(work, rank);
    }
    const std::vector<float> expected(ranks * part, 4.0F);
    return std::ranges::all_of(out, [&](const auto& sum) { return sum == expected; }) ? 0 : 1;
}
