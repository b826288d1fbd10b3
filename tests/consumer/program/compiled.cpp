// A program that links rill::compiled: its sums are right on each topology of which that has the code.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <vector>

#if !defined(RILL_COMPILED) || defined(RILL_COMPILED_HERE)
#error "this unit must take the code from rill::compiled"
#endif

/// Whether this rank gets the right sums, densely and as streams of one value each in two codings.
template <class T, class Shape, class Net>
bool sums_up(Net& net, const Shape& shape) {
    constexpr std::size_t n = 1000;
    rill::group workers{net, shape};
    const std::vector<T> input(n, static_cast<T>(net.rank() + 1));
    const auto sum = static_cast<T>(net.size() * (net.size() + 1) / 2);
    std::vector<T> dense(n), mean(n), sparse(n), coded(n);
    rill::all_reduce(workers, input, dense);
    rill::all_reduce(workers, input, mean, rill::aggregate::mean{});
    auto all = rill::compress::top_k{.density = 1}.template bind<T>(n);
    rill::all_reduce(workers, input, sparse, all);
    auto quantised =
        rill::compress::encoded{rill::compress::keep_all{}, rill::compress::qsgd{.bits = 8}}.template bind<T>(n);
    rill::all_reduce(workers, input, coded, quantised, rill::aggregate::mean{});
    bool right = true;
    for (std::size_t i = 0; i < n; ++i)
        right = right && dense[i] == sum && sparse[i] == sum && mean[i] * static_cast<T>(net.size()) == sum &&
                coded[i] == mean[i];
    return right;
}

int main() {
    std::atomic<int> right = 0;
    rill::in_process::run(4, [&](auto& net) {
        const auto try_on = [&](const auto& shape) {
            right += sums_up<float>(net, shape) && sums_up<double>(net, shape);
        };
        try_on(rill::topology::ring{});
        try_on(rill::topology::recursive_doubling{});
        try_on(rill::topology::halving_doubling{});
        try_on(rill::topology::split_allgather{});
        try_on(rill::topology::tree{});
    });
    std::printf("%d of 20 sums are right\n", right.load());
    return right == 20 ? 0 : 1;
}
