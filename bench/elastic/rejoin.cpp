// What it costs that a rank joins a job of 8 members that trains on, in virtual time: how long it takes to get the
// state, how long a member's step then takes longer than without, and what is sent to a rank that has missed few steps.
// Prints JSON.
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/state_exchange.hpp>
#include <rill/protocol/update_bytes.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using rill::rank_t;

constexpr int members = 8;
constexpr rank_t joiner = members;
constexpr std::uint64_t line = 25'000'000;                    // bytes a second: 200 Mbit/s
constexpr rill::duration computing = rill::milliseconds(30);  // of a step
constexpr double copied_per_second = 2e9;                     // bytes of a snapshot
constexpr double density = 0.001;
constexpr rill::channel done{.context = 4711, .tag = 1};

/// Parameters and the two averages of Adam, all changed by each update.
struct training_state {
    std::vector<float> values;

    explicit training_state(std::size_t parameters) : values(3 * parameters, 0.0F) {}
    std::size_t bytes() const { return values.size() * sizeof(float); }
    rill::buffer pack() const {
        const auto all = std::as_bytes(std::span(values));
        return {all.begin(), all.end()};
    }
    void unpack(rill::byte_view from) { std::memcpy(values.data(), from.data(), std::min(from.size(), bytes())); }
    void apply(rill::byte_view update) {
        rill::frame_scratch<float, std::uint32_t> room;
        const auto read = rill::update_in(update, room);
        for (std::size_t j = 0; j < read.indices().size(); ++j)
            for (std::size_t part = 0; part < 3; ++part)
                values[3 * read.indices()[j] + part] += read.values()[j] * static_cast<float>(part + 1);
    }
};

struct outcome {
    double fetch_seconds = 0;       ///< until the joiner's state is at most one step behind
    std::uint64_t bytes = 0;        ///< that the joiner has sent and received
    rill::duration longest_step{};  ///< of any member
};

/// `have`: the step of the state that the joiner comes with, or 0; it comes after `comes_after` steps, or never.
outcome run(std::size_t parameters, int steps, int comes_after, std::uint64_t have) {
    outcome made;
    std::vector<float> expected;
    std::vector<training_state> at_have(1, training_state(parameters));
    const rill::simulated::network network{.latency = rill::microseconds(100), .bandwidth = line, .cards = [](rank_t) {
                                               return rill::network_card::full_duplex(line);
                                           }};
    rill::simulated::run(members + 1, network, [&](auto& net) {
        using endpoint = std::remove_reference_t<decltype(net)>;
        const rill::view crew{.epoch = 1, .members = {0, 1, 2, 3, 4, 5, 6, 7}};
        const rill::channel begins{.context = 4711, .tag = 2};
        rill::detail::state_exchange<endpoint> with(net, {.patience = rill::seconds(5)});
        if (net.rank() == joiner) {
            if (comes_after < 0) return;
            net.receive(0, begins, rill::deadline::never);
            training_state own = at_have[0];
            const auto before = net.counted();
            const rill::time_point start = net.now();
            with.begin_fetch(0, {1, 0, 2, 3, 4, 5, 6, 7},
                             have == 0 ? std::nullopt : std::optional<std::uint64_t>(have));
            with.fetch(own, rill::deadline::never);
            made.fetch_seconds = (net.now() - start).seconds();
            with.fetch_step(own, static_cast<std::uint64_t>(steps), rill::deadline::never);
            const auto used = net.counted() - before;
            made.bytes = used.bytes_sent + used.bytes_received;
            if (own.values != expected) std::fprintf(stderr, "another state\n"), std::exit(1);
            for (rank_t member = 0; member < members; ++member)
                net.post(member, done, rill::buffer(), rill::deadline::never);
            return;
        }
        rill::subgroup<endpoint> team(net, crew);
        rill::group workers{team, rill::topology::split_allgather{}};
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = density}}.bind(parameters);
        training_state own(parameters);
        std::vector<float> gradient(parameters);
        rill::stream<float> update;
        with.serve(crew, 0);
        const auto offer = [&](std::uint64_t step) {
            if (!with.wants_snapshot(step)) return;
            net.sleep_until(net.now() + rill::nanoseconds(static_cast<std::int64_t>(
                                            1e9 * static_cast<double>(own.bytes()) / copied_per_second)));
            with.take_snapshot(step, own.pack());
        };
        for (int step = 1; step <= steps; ++step) {
            const rill::time_point start = net.now();
            const rill::counter_rng random(rill::random_key{1}.derive(net.rank(), static_cast<std::uint64_t>(step)));
            for (std::size_t i = 0; i < parameters; ++i) gradient[i] = random.uniform(i) - 0.5F;
            net.sleep_until(net.now() + computing);
            rill::all_reduce(workers, gradient, update, codec);
            rill::buffer bytes = rill::update_bytes(update.view());
            own.apply(bytes);
            with.committed(static_cast<std::uint64_t>(step), std::move(bytes));
            offer(static_cast<std::uint64_t>(step));
            if (step > 1) made.longest_step = std::max(made.longest_step, net.now() - start);
            if (net.rank() == 0 && static_cast<std::uint64_t>(step) == have) at_have[0] = own;
            if (net.rank() == 0 && step == comes_after) net.post(joiner, begins, rill::buffer(), rill::deadline::never);
        }
        if (net.rank() == 0) expected = own.values;
        if (comes_after < 0) return;
        while (!net.receive(joiner, done, net.now() + rill::milliseconds(1))) offer(static_cast<std::uint64_t>(steps));
    });
    return made;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s PARAMETERS\n", argv[0]);
        return 2;
    }
    const auto parameters = static_cast<std::size_t>(std::atoll(argv[1]));
    const double state_bytes = static_cast<double>(training_state(parameters).bytes());
    const outcome alone = run(parameters, 20, -1, 0), joined = run(parameters, 20, 3, 0),
                  missed = run(parameters, 14, 14, 4);
    std::printf(
        "{\"rejoin\": {\"seconds\": %.6f, \"line_seconds\": %.6f, \"ratio\": %.4f, \"longest_step_ms\": %.4f, "
        "\"longest_step_alone_ms\": %.4f, \"pause_ms\": %.4f}, "
        "\"ten_steps\": {\"bytes\": %llu, \"state_bytes\": %.0f, \"ratio_parameters\": %.4f, \"ratio\": %.4f}}\n",
        joined.fetch_seconds, state_bytes / static_cast<double>(line),
        joined.fetch_seconds * static_cast<double>(line) / state_bytes, joined.longest_step.seconds() * 1e3,
        alone.longest_step.seconds() * 1e3, (joined.longest_step - alone.longest_step).seconds() * 1e3,
        static_cast<unsigned long long>(missed.bytes), state_bytes, 3 * static_cast<double>(missed.bytes) / state_bytes,
        static_cast<double>(missed.bytes) / state_bytes);
}
