// usage: bench_mask_mask ENTRIES DENSITY SAMPLES
//
// Prints the seconds of each way to choose some of ENTRIES coordinates at random.
#include "baseline.hpp"

#include <rill/kernel/mask.hpp>

#include "shared/turns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace {

/// Checks that coordinates ascend, and that each eighth of them holds about as many as expected.
void require_expected(const char* name, std::span<const std::uint32_t> mask, std::size_t n, double density) {
    constexpr std::size_t parts = 8;
    const double expected = static_cast<double>(n) / parts * density;
    bool holds = std::adjacent_find(mask.begin(), mask.end(), std::greater_equal<>()) == mask.end() &&
                 (mask.empty() || mask.back() < n);
    for (std::size_t i = 0; i < parts; ++i) {
        const auto count = std::lower_bound(mask.begin(), mask.end(), (i + 1) * n / parts) -
                           std::lower_bound(mask.begin(), mask.end(), i * n / parts);
        holds &= std::abs(static_cast<double>(count) - expected) < 6 * std::sqrt(expected) + 1;
    }
    if (holds) return;
    std::fprintf(stderr, "wrong: %s selects %zu of %zu\n", name, mask.size(), n);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const std::size_t n = std::strtoull(argv[1], nullptr, 10);
    const double density = std::strtod(argv[2], nullptr);
    bench::turns turns;

    const rill::aligned_vector<float> x(n, 1.0F);
    turns.add("read_pass", [&] {
        const float sum = bench::read_pass(x.data(), n);
        bench::keep(&sum);
    });

    const rill::kernel::geometric_skips skips(density);
    rill::aligned_vector<std::uint32_t> mask;
    const auto select = [&] {
        mask.clear();
        const std::size_t count = rill::kernel::random_mask(rill::random_key{3}, skips, {0, n}, mask);
        bench::keep(mask.data());
        return count;
    };
    const std::size_t selected = select();
    require_expected("rill", std::span(mask).first(selected), n, density);
    turns.add("rill", [&] { select(); });

    rill::aligned_vector<std::uint32_t> out(n + 64);
    using baseline = std::size_t (*)(double, std::size_t, std::uint32_t*);
    std::vector<std::pair<const char*, baseline>> baselines{{"bernoulli", bench::bernoulli_mask},
                                                            {"branchless", bench::branchless_mask},
                                                            {"block_skip", bench::block_mask}};
#if defined(__AVX512F__)
    baselines.emplace_back("avx512", bench::avx512_mask);
#endif
    for (const auto& [name, choose] : baselines) {
        require_expected(name, std::span(out).first(choose(density, n, out.data())), n, density);
        turns.add(name, [&out, density, n, choose = choose] {
            choose(density, n, out.data());
            bench::keep(out.data());
        });
    }
    turns.run(std::atoi(argv[3]));
    turns.print();
    return 0;
}
