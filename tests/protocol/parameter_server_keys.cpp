#include <rill/aggregate/add.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using rill::parameter_server;
using rill::server_options;
using rill::aggregate::add;
using rill::simulated::endpoint;
using rill::straggler::bounded;
using rill::straggler::unbounded;

namespace served_by_keys {

constexpr std::size_t dimension = 1000;
constexpr std::uint64_t steps = 12;

/// Doubles the model and adds; it knows no streams.
struct twice {
    using fold_type = rill::aggregate::sum;
    struct bound {
        static void apply(std::span<double> model, std::span<const double> fold, double, std::uint64_t) {
            for (std::size_t i = 0; i < model.size(); ++i) model[i] += 2 * fold[i];
        }
    };
    template <class T>
    bound bind(std::size_t) const {
        return {};
    }
};

/// The coordinates that a worker works on in a step: some, none in some parts, the first and the last in some steps.
template <class Index>
std::vector<Index> keys_of(int rank, std::uint64_t step) {
    std::vector<Index> keys;
    const rill::counter_rng draw(rill::random_key{5}.derive(rank, step));
    for (std::size_t i = 0; i < dimension; ++i)
        if (draw.uniform(i) < 0.02F && (step % 3 != 0 || i < 400)) keys.push_back(static_cast<Index>(i));
    if (step % 4 == 1) keys = {0, dimension - 1};
    if (step % 4 == 2) keys.clear();
    return keys;
}

double gradient_at(double value, std::uint64_t step) { return double(std::int64_t(value) / 4) + double(step) - 3; }

/// A run in lockstep, by keys or dense; what each worker saw at its keys, and the final model.
template <class Index, class Move>
std::vector<std::vector<double>> seen_by(bool by_keys, const server_options& options, Move move) {
    std::vector<std::vector<double>> all(4);
    rill::simulated::run(4, {.latency = rill::microseconds(10)}, [&](endpoint& net) {
        std::vector<double> model(dimension), gradient(dimension), values;
        parameter_server replica{net, options, bounded{0}, move, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        std::vector<double>& seen = all[static_cast<std::size_t>(net.rank())];
        for (std::uint64_t step = 0; step < steps; ++step) {
            const std::vector<Index> keys = keys_of<Index>(net.rank(), step);
            values.resize(keys.size());
            const auto held = by_keys ? replica.pull(keys, values) : replica.pull(model);
            if (!by_keys)
                for (std::size_t i = 0; i < keys.size(); ++i) values[i] = model[static_cast<std::size_t>(keys[i])];
            seen.insert(seen.end(), values.begin(), values.end());
            rill::stream<double, Index> stream(dimension);
            gradient.assign(dimension, 0);
            for (std::size_t i = 0; i < keys.size(); ++i) {
                gradient[static_cast<std::size_t>(keys[i])] = gradient_at(values[i], step);
                stream.push_back(static_cast<std::size_t>(keys[i]), gradient_at(values[i], step));
            }
            net.sleep_until(net.now() + rill::milliseconds(1));
            by_keys ? replica.push(stream, *held) : replica.push(gradient, *held);
        }
        replica.retire();
        CHECK(!replica.pull(model));
        seen.insert(seen.end(), model.begin(), model.end());
    });
    return all;
}

template <class Index>
void check_all_updates() {
    const rill::train::descent plain{rill::train::sgd{}, rill::train::constant_rate{0.5}};
    const rill::train::descent heavy{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.5}};
    for (const server_options& options : {server_options{}, server_options{.servers = 2}, server_options{.servers = 3},
                                          server_options{.servers = 4, .dedicated = false}}) {
        CAPTURE(options.servers);
        const auto check = [&](auto move) {
            CHECK(seen_by<Index>(true, options, move) == seen_by<Index>(false, options, move));
        };
        check(add{});
        check(twice{});
        check(plain);
        if (options.dedicated && options.servers == 3)
            check(heavy);  // one worker: the order of pushes decides its bits
    }
}

}  // namespace served_by_keys

using namespace served_by_keys;

TEST_CASE("parameter_server: by keys it does what it does dense") {
    check_all_updates<std::uint32_t>();
    check_all_updates<std::uint64_t>();
}

TEST_CASE("parameter_server: only the keys and their values travel") {
    const auto bytes_of = [](bool by_keys) {
        std::uint64_t bytes = 0;
        rill::simulated::run(3, {}, [&](endpoint& net) {
            std::vector<double> model(100'000);
            parameter_server replica{net, {.servers = 2}, unbounded{}, add{}, model};
            if (replica.is_server()) return static_cast<void>(replica.pull(model));
            const auto before = net.counted();
            const std::vector<std::uint32_t> keys{5, 70'000};
            std::vector<double> values(2);
            rill::stream<double> stream(model.size());
            for (const std::uint32_t key : keys) stream.push_back(key, 1.0);
            for (int i = 0; i < 10; ++i)
                by_keys ? replica.push(stream, *replica.pull(keys, values)) : replica.push(model, *replica.pull(model));
            const auto after = net.counted();
            bytes = after.bytes_sent + after.bytes_received - before.bytes_sent - before.bytes_received;
            replica.retire();
            CHECK(!replica.pull(model));
            CHECK(model[70'000] == (by_keys ? 10 : 0));
        });
        return bytes;
    };
    CHECK(bytes_of(true) < 10 * 2 * 600);  // ten times, with two servers: four frames and some numbers
    CHECK(bytes_of(false) > 10 * 2 * 800'000);
    CHECK(bytes_of(false) < 10 * 2 * 801'000);
}

TEST_CASE("parameter_server: the last pull by keys gives their final values") {
    rill::simulated::run(4, {}, [](endpoint& net) {
        const std::vector<std::uint32_t> keys{1, 3, 8};
        std::vector<double> model(9), values(3);
        parameter_server replica{net, {.servers = 2}, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const auto held = replica.pull(keys, values);
        for (std::size_t i = 0; i < 9; ++i) model[i] = double(i);
        replica.push(model, *held);
        replica.retire();
        CHECK(!replica.pull(keys, values));
        CHECK(values == std::vector<double>{2, 6, 16});
    });
}

TEST_CASE("parameter_server: a NaN in a stream names the coordinate") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        std::vector<double> model(9);
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        rill::stream<double> stream(9);
        stream.push_back(2, 1.0);
        stream.push_back(7, std::numeric_limits<double>::quiet_NaN());
        replica.push(stream, *replica.pull(model));
        replica.end();
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(9));
        const auto fate = replica.fate();
        REQUIRE(fate);
        CHECK(fate->what == rill::push_fate::outcome::not_finite);
        CHECK(fate->coordinate == 7);
    });
}

TEST_CASE("parameter_server: unsorted and foreign keys are refused before anything is sent") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        std::vector<double> model(9), values(2);
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const auto held = replica.pull(model);
        const std::uint64_t sent = net.counted().messages_sent;
        using keys = std::vector<std::uint32_t>;
        for (const keys& wrong : {keys{3, 2}, keys{3, 3}, keys{3, 9}, keys{3}})
            CHECK_THROWS_AS(replica.pull(wrong, values), rill::contract_violation);
        rill::stream<double> other(8), unsorted(9);
        CHECK_THROWS_AS(replica.push(other, *held), rill::contract_violation);
        const auto room = unsorted.make_sparse({0, 9}, 2);
        room.indices[0] = 4;
        room.indices[1] = 4;
        room.values[0] = room.values[1] = 1;
        CHECK_THROWS_AS(replica.push(unsorted, *held), rill::contract_violation);
        CHECK(net.counted().messages_sent == sent);
        replica.retire();
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(9));
    });
}
