// The first program of README.md.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
    rill::in_process::run(8, [](auto& net) {  // eight ranks, each a thread
        rill::group workers{net, rill::topology::split_allgather{}};
        std::vector<float> gradient(1'000'000), update(gradient.size());
        for (std::size_t i = 0; i < gradient.size(); ++i)  // stands for yours: another one on each rank
            gradient[i] = static_cast<float>((i + 1) * static_cast<std::size_t>(net.rank() + 7) % 1009);
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}.bind(gradient.size());
        for (int step = 0; step < 3; ++step) {
            const rill::receipt done = rill::all_reduce(workers, gradient, update, codec, rill::aggregate::mean{});
            if (net.rank() == 0)
                std::printf("step %d: mean over %d ranks, %.3f MB sent\n", step, done.contributors,
                            static_cast<double>(done.wire.bytes_sent) / 1e6);
        }
    });
}
