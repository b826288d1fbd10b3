// The mean of `error_feedback` in tools/compile_seconds.py with the standard library alone: four threads choose the
// largest entries of gradient and residual, and each sorts and merges what all chose. No message, no deadline, no
// error. The exit code says whether the means are right.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

struct entry {
    std::size_t index;
    float value;
};

class top_k {
  public:
    top_k(std::size_t dimension, std::size_t count) : count_(count), residual_(dimension), order_(dimension) {}

    std::vector<entry> encode(const std::vector<float>& gradient) {
        for (std::size_t at = 0; at != gradient.size(); ++at) residual_[at] += gradient[at];
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto cut = order_.begin() + static_cast<std::ptrdiff_t>(count_);
        std::nth_element(order_.begin(), cut, order_.end(), [this](std::size_t left, std::size_t right) {
            return std::abs(residual_[left]) > std::abs(residual_[right]);
        });
        std::vector<entry> chosen;
        for (auto index = order_.begin(); index != cut; ++index) {
            chosen.push_back({*index, residual_[*index]});
            residual_[*index] = 0;
        }
        return chosen;
    }

  private:
    std::size_t count_;
    std::vector<float> residual_;
    std::vector<std::size_t> order_;
};

std::vector<entry> merged(std::vector<entry> entries) {
    std::ranges::stable_sort(entries, {}, &entry::index);
    std::vector<entry> sums;
    for (const entry& next : entries) {
        if (!sums.empty() && sums.back().index == next.index)
            sums.back().value += next.value;
        else
            sums.push_back(next);
    }
    return sums;
}

int main() {
    constexpr std::size_t ranks = 4;
    constexpr std::size_t dimension = 1000;
    constexpr std::size_t count = 10;
    std::vector<std::vector<entry>> sent(ranks);
    std::vector<std::vector<float>> out(ranks, std::vector<float>(dimension));
    std::barrier all_here(static_cast<std::ptrdiff_t>(ranks));
    const auto work = [&](std::size_t rank) {
        std::vector<float> in(dimension);
        std::iota(in.begin(), in.end(), 0.0F);
        top_k codec(dimension, count);
        sent[rank] = codec.encode(in);
        all_here.arrive_and_wait();
        std::vector<entry> entries;
        for (const auto& of_one : sent) entries.insert(entries.end(), of_one.begin(), of_one.end());
        for (const entry& sum : merged(entries)) out[rank][sum.index] = sum.value / static_cast<float>(ranks);
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t rank = 0; rank != ranks; ++rank) threads.emplace_back(work, rank);
    }
    std::vector<float> expected(dimension);
    for (std::size_t at = dimension - count; at != dimension; ++at) expected[at] = static_cast<float>(at);
    return std::ranges::all_of(out, [&](const auto& mean) { return mean == expected; }) ? 0 : 1;
}
