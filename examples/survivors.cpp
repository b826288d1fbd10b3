// A failing rank is named on every rank, and no rank waits for it. The others repeat the step without it.
#include <rill/rill.hpp>
#include <rill/session.hpp>
#include <rill/transport/in_process.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    rill::in_process::run(4, [](auto& net) {
        std::vector<float> gradient(100, static_cast<float>(net.rank())), mean(gradient.size());
        if (net.rank() == 2) gradient[17] = std::nanf("");
        rill::survivors alive{net};
        try {
            alive.run([&](auto& members) {  // all living ranks complete this step, or all repeat it
                rill::group all{members, rill::topology::split_allgather{}};
                auto codec = rill::compress::top_k{.density = 1}.bind(gradient.size());
                try {
                    rill::all_reduce(all, gradient, mean, codec, rill::aggregate::mean{});
                } catch (const rill::error& failed) {  // names the same culprit on all ranks
                    if (net.rank() == 0) std::printf("%s\n", failed.what());
                    throw;
                }
            });
            if (net.rank() == 0)
                std::printf("mean of the %zu others: %.4f\n", alive.view().members.size(),
                            static_cast<double>(mean[0]));
        } catch (const rill::invalid_value&) {  // on rank 2 alone, which leaves
        }
    });
}
