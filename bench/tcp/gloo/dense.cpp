// usage: tools/launch -n RANKS bench_tcp_dense_gloo INTERFACE FOLDER SHAPE SIZE SAMPLES ALGORITHM...
// all_reduce of SIZE floats over rill::tcp and by Gloo's algorithms over TCP, by turns in the same processes. SHAPE is
// the topology: recursive_doubling or ring. Rank 0 prints the seconds of a call on the slowest rank in each sample.
// Gloo's ranks meet in FOLDER, which is empty, and use INTERFACE, such as lo. The algorithms ring_chunked and
// halving_doubling add in place; so does rill::tcp where it is compared with them ("tcp_in_place").
#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include "../../foundation/workload.hpp"
#include "../../shared/expected.hpp"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

struct contestant {
    const char* name;
    bool in_place;  // adds what the output holds
    std::function<void()> call;
    std::vector<double> seconds{};
};

std::shared_ptr<gloo::Context> meet(rill::tcp::endpoint& net, const std::string& interface, const std::string& folder) {
    gloo::transport::tcp::attr at;
    at.iface = interface;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(at);
    gloo::rendezvous::FileStore store(folder);
    const auto made = std::make_shared<gloo::rendezvous::Context>(net.rank(), net.size());
    made->connectFullMesh(store, device);
    return made;
}

/// `gloo::allreduce` from one vector to another, as PyTorch calls it.
std::function<void()> gloo_call(const std::shared_ptr<gloo::Context>& context, std::vector<float>& input,
                                std::vector<float>& output, gloo::AllreduceOptions::Algorithm algorithm) {
    const auto made = std::make_shared<gloo::AllreduceOptions>(context);
    made->setAlgorithm(algorithm);
    made->setInput(input.data(), input.size());
    made->setOutput(output.data(), output.size());
    void (*const add)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
    made->setReduceFunction(add);
    return [made] { gloo::allreduce(*made); };
}

/// An algorithm that is an object with the memory which it adds up.
template <class Algorithm>
std::function<void()> gloo_object(const std::shared_ptr<gloo::Context>& context, std::vector<float>& output) {
    const auto made =
        std::make_shared<Algorithm>(context, std::vector<float*>{output.data()}, static_cast<int>(output.size()));
    return [made] { made->run(); };
}

template <class Shape>
void measure(rill::tcp::endpoint& net, const std::string& interface, const std::string& folder, std::size_t size,
             int samples, const std::vector<std::string>& algorithms) {
    rill::group workers{net, Shape{}}, all{net, rill::topology::recursive_doubling{}};
    const std::shared_ptr<gloo::Context> context = meet(net, interface, folder);
    const int ranks = net.size();
    std::vector<float> input(size), output(size), expected(size);
    foundation::fill(input, net.rank());
    for (std::size_t i = 0; i < size; ++i) expected[i] = foundation::entry_of_sum(ranks, i);
    using algorithm = gloo::AllreduceOptions::Algorithm;
    std::vector contestants{
        contestant{"tcp", false, [&] { rill::all_reduce(workers, input, output); }},
        contestant{"tcp_in_place", true, [&] { rill::all_reduce(workers, output, output); }},
        contestant{"ring", false, gloo_call(context, input, output, algorithm::RING)},
        contestant{"bcube", false, gloo_call(context, input, output, algorithm::BCUBE)},
        contestant{"ring_chunked", true, gloo_object<gloo::AllreduceRingChunked<float>>(context, output)},
        contestant{"halving_doubling", true, gloo_object<gloo::AllreduceHalvingDoubling<float>>(context, output)}};
    std::erase_if(contestants, [&](const contestant& each) {
        const bool is_meant = std::find(algorithms.begin(), algorithms.end(), each.name) != algorithms.end();
        return !is_meant && std::string(each.name).substr(0, 3) != "tcp";
    });
    for (int sample = -1; sample < samples; ++sample) {  // the first one makes connections
        for (contestant& each : contestants) {
            if (each.in_place)
                output = input;
            else
                std::fill(output.begin(), output.end(), -1.0F);
            rill::barrier(all);
            const auto start = std::chrono::steady_clock::now();
            each.call();
            const std::array own{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
            std::array<double, 1> slowest{};
            rill::all_reduce(all, own, slowest, rill::aggregate::max{});
            bench::require_equal(output, expected, each.name);
            if (sample >= 0) each.seconds.push_back(slowest.front());
        }
    }
    if (net.rank() != 0) return;
    const char* separator = "{";
    for (const contestant& each : contestants) {
        std::printf("%s\"%s\": [", separator, each.name);
        for (std::size_t i = 0; i < each.seconds.size(); ++i)
            std::printf("%s%.9f", i == 0 ? "" : ", ", each.seconds[i]);
        std::printf("]");
        separator = ", ";
    }
    std::puts("}");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 7)
        return std::fprintf(stderr, "usage: launch -n RANKS %s INTERFACE FOLDER SHAPE SIZE SAMPLES ALGORITHM...\n",
                            argv[0]),
               2;
    const auto measure_shape =
        std::string(argv[3]) == "ring" ? measure<rill::topology::ring> : measure<rill::topology::recursive_doubling>;
    try {
        rill::tcp::run([&](rill::tcp::endpoint& net) {
            measure_shape(net, argv[1], argv[2], std::strtoull(argv[4], nullptr, 10), std::atoi(argv[5]),
                          {argv + 6, argv + argc});
        });
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
