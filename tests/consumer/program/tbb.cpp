// A rank's work on the threads of oneTBB gives the same bits as on one thread.
#include <rill/adapt/tbb.hpp>
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <vector>

template <class Net, class Executor>
std::vector<float> sums(Net& net, const Executor& executor) {
    rill::group workers{net, rill::topology::split_allgather{}, {}, executor};
    std::vector<float> input(200'000), output(input.size());
    for (std::size_t i = 0; i < input.size(); ++i)
        input[i] = static_cast<float>((i + static_cast<std::size_t>(net.rank())) % 1000) / 3;
    auto codec = rill::compress::top_k{.density = 0.5}.bind(input.size());
    rill::all_reduce(workers, input, output, codec);
    return output;
}

int main() {
    std::atomic<int> same = 0;
    rill::in_process::run(
        4, [&](auto& net) { same += sums(net, rill::adapt::tbb_executor{}) == sums(net, rill::serial{}); });
    std::printf("%d of 4 ranks have the same sums\n", same.load());
    return same == 4 ? 0 : 1;
}
