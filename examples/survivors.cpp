// A rank that fails is named on every rank, and nobody waits for it. The others go on as a group of their own.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/subgroup.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    rill::in_process::run(4, [](auto& net) {
        std::vector<float> gradient(100, static_cast<float>(net.rank())), mean(gradient.size());
        if (net.rank() == 2) gradient[17] = std::nanf("");
        rill::rank_t culprit = rill::no_rank;
        try {
            rill::group all{net, rill::topology::split_allgather{}};  // a rank may still be in here when another fails
            auto codec = rill::compress::top_k{.count = 5}.bind(gradient.size());
            rill::all_reduce(all, gradient, mean, codec, rill::aggregate::mean{});
        } catch (const rill::error& failed) {  // the same one on all ranks
            culprit = failed.culprit();
            if (net.rank() == 0) std::printf("%s\n", failed.what());
        }
        if (net.rank() == culprit) return;

        std::vector<rill::rank_t> members;
        for (rill::rank_t rank = 0; rank < net.size(); ++rank)
            if (rank != culprit) members.push_back(rank);
        rill::subgroup others{net, members};  // a transport like any other
        rill::group survivors{others, rill::topology::split_allgather{}};
        const rill::receipt done = rill::all_reduce(survivors, gradient, mean, rill::aggregate::mean{});
        if (survivors.rank() == 0)
            std::printf("mean of the %d others: %.4f\n", done.contributors, static_cast<double>(mean[0]));
    });
}
