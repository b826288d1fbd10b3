// A picture of an all-reduce: who sent what to whom, when, and who waited. Open the file at ui.perfetto.dev.
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>
#include <rill/transport/write_trace.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

int main() {
    constexpr int ranks = 4;
    std::vector<rill::trace_log> logs(ranks);

    rill::simulated::run(ranks, {.latency = rill::microseconds(20), .bandwidth = 125'000'000}, [&](auto& network) {
        rill::traced net{network, logs[static_cast<std::size_t>(network.rank())]};  // wraps any transport; is one, too
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> gradient(100'000, 1.0F);
        {
            const auto computing = net.span("backward pass");  // any name that the program chooses
            net.sleep_until(net.now() + rill::microseconds(500 + 300 * net.rank()));
        }
        rill::all_reduce(workers, gradient, gradient);
    });

    std::string json;
    rill::write_trace(json, logs);
    if (std::FILE* file = std::fopen("all_reduce.trace.json", "w")) {
        std::fwrite(json.data(), 1, json.size(), file);
        std::fclose(file);
    }
    for (const rill::trace_log& log : logs) {
        rill::duration waiting;
        for (const rill::trace_event& event : log.events())
            if (event.kind == rill::trace_event::what::receive) waiting = waiting + (event.end - event.begin);
        std::printf("rank %d: %zu events, %.2f ms in receives\n", log.rank(), log.events().size(),
                    waiting.seconds() * 1e3);
    }
    std::printf("written: all_reduce.trace.json\n");
}
