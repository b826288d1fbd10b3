// all_reduce of floats on a ring, among the ranks that the launcher's variables describe. Rank 0 prints the seconds of
// each repetition, by size. All sums are checked.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/time.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace rill;

std::vector<double> seconds_of(auto& net, std::size_t size, int repetitions) {
    group workers{net, topology::ring{}};
    std::vector<float> values(size), sum(size);
    std::vector<double> all;
    for (int i = -1; i < repetitions; ++i) {  // the first one makes the connections
        std::fill(values.begin(), values.end(), static_cast<float>(net.rank() + i + 2));
        barrier(workers);
        const time_point start = net.now();
        all_reduce(workers, values, sum);
        barrier(workers);
        if (i >= 0) all.push_back((net.now() - start).seconds());
        const int ranks = net.size();
        const auto expected = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * (i + 2));
        if (std::any_of(sum.begin(), sum.end(), [=](float each) { return each != expected; }))
            throw std::runtime_error("a sum is wrong");
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s REPETITIONS SIZE...\n", argv[0]);
        return 2;
    }
    try {
        tcp::run([&](auto& net) {
            std::string text = "{";
            for (int i = 2; i < argc; ++i) {
                text += (i == 2 ? "\"" : ", \"") + std::string(argv[i]) + "\": [";
                const auto all = seconds_of(net, std::strtoull(argv[i], nullptr, 10), std::atoi(argv[1]));
                for (std::size_t k = 0; k < all.size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(all[k]);
                text += "]";
            }
            if (net.rank() == 0) std::printf("%s}\n", text.c_str());
        });
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
