// A tensor and an expression of xtensor.
#include <rill/adapt/xtensor.hpp>
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <atomic>
#include <cstdio>

int main() {
    std::atomic<int> right = 0;
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        const xt::xtensor<float, 2> one = xt::ones<float>({3, 5});
        xt::xtensor<float, 2> sum = xt::zeros<float>({3, 5});
        rill::all_reduce(workers, static_cast<float>(net.rank()) * one, sum);
        right += sum == 6.0F * one;
    });
    std::printf("%d of 4 ranks have the right sums\n", right.load());
    return right == 4 ? 0 : 1;
}
