// Gradients with few entries travel as indices and values. A fold with many entries becomes dense automatically.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <cstddef>
#include <cstdio>

/// Every rank contributes one in `step` of 100,000 coordinates; two ranks share each.
void fold(std::size_t step) {
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};

        rill::stream<float> mine(100'000), sum;
        for (std::size_t i = static_cast<std::size_t>(net.rank() % 2); i < mine.dimension(); i += step)
            mine.push_back(i, 1.0F);  // ascending coordinates
        const rill::receipt done = rill::all_reduce(workers, mine, sum);

        if (net.rank() == 0)
            std::printf("%6zu entries a rank: the sum is %-6s with %6zu entries, rank 0 sent %7llu bytes\n",
                        mine.count(), sum.is_dense() ? "dense" : "sparse", sum.count(),
                        static_cast<unsigned long long>(done.wire.bytes_sent));
    });
}

int main() {
    fold(1000);  // 0.1 %
    fold(100);   // 1 %
    fold(10);    // 10 %
    fold(4);     // 25 %
    fold(2);     // 50 %: the sum has every coordinate
}
