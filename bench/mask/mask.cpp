// usage: bench_mask_mask ENTRIES DENSITY SAMPLES
//
// Prints the seconds of each way to choose some of ENTRIES coordinates at random.
#include "baseline.hpp"

#include <rill/kernel/mask.hpp>

#include "shared/turns.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

void require_expected(const char* name, std::size_t count, std::size_t n, double density) {
    const double expected = static_cast<double>(n) * density;
    if (std::abs(static_cast<double>(count) - expected) < 5 * std::sqrt(expected)) return;
    std::fprintf(stderr, "wrong: %s selects %zu of %zu\n", name, count, n);
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
    require_expected("rill", select(), n, density);
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
        require_expected(name, choose(density, n, out.data()), n, density);
        turns.add(name, [&out, density, n, choose = choose] {
            choose(density, n, out.data());
            bench::keep(out.data());
        });
    }
    turns.run(std::atoi(argv[3]));
    turns.print();
    return 0;
}
