#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/scratch.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using rill::parameter_server;
using rill::server_options;
using rill::simulated::endpoint;
using rill::straggler::bounded;
using rill::train::checkpoint;

namespace served_again {

using vector = std::vector<double>;

constexpr int ranks = 4;
const std::vector<server_options> every_option{
    {.servers = 1}, {.servers = 2}, {.servers = 2, .dedicated = false}, {.servers = ranks, .dedicated = false}};

const rill::train::descent with_momentum{rill::train::sgd{.momentum = 0.5},
                                         rill::train::step_decay{.initial = 0.25, .factor = 0.5, .every = 10}};

std::string file(const scratch_directory& in, rill::rank_t rank) { return in / std::to_string(rank).c_str(); }

/// A gradient of whole numbers that depends on model, rank and step.
vector gradient_at(const vector& model, rill::rank_t rank, std::uint64_t step) {
    const rill::counter_rng draw(rill::random_key{11}.derive(rank, step));
    vector to(model.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = double(std::int64_t(model[i])) + double(draw.bits(i) % 9);
    return to;
}

/// Steps `from … to-1` of each worker, in an order that is the same in each round. Returns the final model of a worker
/// and writes a file for each rank.
template <class Move>
vector run(const server_options& options, const Move& move, std::uint64_t from, std::uint64_t to,
           const scratch_directory& files) {
    vector reached;
    rill::simulated::run(ranks, {.latency = rill::microseconds(1)}, [&](endpoint& net) {
        vector model(11, 100);
        parameter_server replica{net, options, bounded{0}, move, model};
        if (from > 0) replica.restore(checkpoint::load(file(files, net.rank())), "run.");
        std::uint64_t step = from;
        while (const auto held = replica.pull(model)) {
            CHECK(held->version == step * std::uint64_t(replica.workers()));
            if (step == to) {
                replica.retire();
                continue;
            }
            net.sleep_until(net.now() + rill::milliseconds(1 + net.rank()));
            replica.push(gradient_at(model, net.rank(), step++), *held);
        }
        CHECK(replica.version() == to * std::uint64_t(replica.workers()));
        checkpoint::writer out;
        replica.save(out, "run.");
        out.save(file(files, net.rank()));
        const vector newest(replica.newest().begin(), replica.newest().end());
        if (!replica.is_server()) CHECK(newest == model);
        if (net.rank() == 0) reached = model;
    });
    return reached;
}

/// What each rank throws when it restores the file `file_of(rank)`, and then when it pulls.
template <class FileOf>
std::vector<std::string> refusals(const server_options& options, FileOf file_of) {
    std::vector<std::string> texts(ranks);
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        vector model(11, 100);
        parameter_server replica{net, options, bounded{0}, with_momentum, model};
        std::string& text = texts[static_cast<std::size_t>(net.rank())];
        try {
            replica.restore(checkpoint::load(file_of(net.rank())), "run.");
        } catch (const std::exception& thrown) {
            text = thrown.what();
        }
        CHECK_THROWS_AS(replica.pull(model), rill::error);
    });
    return texts;
}

}  // namespace served_again

using namespace served_again;

TEST_CASE("parameter_server: a resumed run equals an unbroken one, bit for bit") {
    for (const server_options& options : every_option) {
        CAPTURE(options.servers);
        CAPTURE(options.dedicated);
        const auto check = [&](const auto& move) {
            const scratch_directory whole, halves;
            const vector through = run(options, move, 0, 12, whole);
            CHECK(run(options, move, 0, 5, halves) != through);
            CHECK(run(options, move, 5, 12, halves) == through);
        };
        check(with_momentum);
        check(rill::aggregate::add{});
        check(rill::aggregate::mean_of_latest{});
    }
}

TEST_CASE("parameter_server: among threads a resumed run goes on with all that was pushed") {
    for (const server_options& options : every_option) {
        const scratch_directory files;
        for (const int runs : {1, 2, 3})
            rill::in_process::run(ranks, [&](auto& net) {
                vector model(11), one(11, 1);
                parameter_server replica{net, options, bounded{2}, rill::aggregate::add{}, model};
                if (runs > 1) replica.restore(checkpoint::load(file(files, net.rank())), "");
                for (int step = 0; const auto held = replica.pull(model); ++step) {
                    if (step < 50)
                        replica.push(one, *held);
                    else
                        replica.retire();
                }
                checkpoint::writer out;
                replica.save(out, "");
                out.save(file(files, net.rank()));
                CHECK(replica.newest()[0] == 50 * runs * replica.workers());
                CHECK(replica.version() == std::uint64_t(50 * runs * replica.workers()));
            });
    }
}

TEST_CASE("parameter_server: where one rank's file does not fit, all ranks throw, and the run cannot begin") {
    const rill::train::descent other{rill::train::sgd{.momentum = 0.25}, rill::train::constant_rate{0.5}};
    for (const server_options& options : every_option) {
        CAPTURE(options.servers);
        CAPTURE(options.dedicated);
        const scratch_directory good, later, same_version;
        run(options, with_momentum, 0, 5, good);
        run(options, with_momentum, 0, 6, later);
        run(options, other, 0, 5, same_version);
        for (const scratch_directory* wrong : {&later, &same_version})
            for (const rill::rank_t odd : {1, 3}) {
                CAPTURE(odd);
                const auto texts =
                    refusals(options, [&](rill::rank_t rank) { return file(rank == odd ? *wrong : good, rank); });
                for (const std::string& text : texts) {
                    CAPTURE(text);
                    CHECK(has(text, "another state that it goes on from"));
                }
            }
        checkpoint::writer().save(later / "empty");
        const auto texts =
            refusals(options, [&](rill::rank_t rank) { return rank == 2 ? later / "empty" : file(good, rank); });
        for (const std::string& text : texts) {
            CAPTURE(text);
            CHECK(has(text, "no such section"));
            CHECK(has(text, "rank 2: ") == (&text != &texts[2]));
        }
    }
}

TEST_CASE("parameter_server: files of two servers that were exchanged are refused") {
    const scratch_directory files;
    run({.servers = 2}, with_momentum, 0, 5, files);
    const auto texts =
        refusals({.servers = 2}, [&](rill::rank_t rank) { return file(files, rank < 2 ? rank : 5 - rank); });
    for (const std::string& text : texts) CHECK(text != "");
}

TEST_CASE("parameter_server: what else a rank resumes may refuse, too") {
    const scratch_directory files;
    run({.servers = 2, .dedicated = false}, with_momentum, 0, 5, files);
    rill::in_process::run(ranks, [&](auto& net) {
        vector model(11, 100);
        parameter_server replica{net, {.servers = 2, .dedicated = false}, bounded{0}, with_momentum, model};
        const auto in = checkpoint::load(file(files, net.rank()));
        try {
            replica.restore(in, "run.", [&] {
                if (net.rank() == 3) throw std::runtime_error("not mine");
            });
            FAIL("rank 3 has refused");
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.culprit() == 3);
            CHECK(net.rank() != 3);
        } catch (const std::runtime_error& own) {
            CHECK(std::string(own.what()) == "not mine");
            CHECK(net.rank() == 3);
        }
        CHECK_THROWS_AS(replica.pull(model), rill::error);
    });
}

TEST_CASE("parameter_server: is saved after its end and restored before the first pull only") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        const scratch_directory files;
        vector model(3);
        parameter_server replica{net, {}, bounded{0}, rill::aggregate::add{}, model};
        checkpoint::writer out;
        CHECK_THROWS_AS(replica.save(out, ""), rill::contract_violation);
        CHECK_THROWS_AS(replica.version(), rill::contract_violation);
        CHECK_THROWS_AS(replica.newest(), rill::contract_violation);
        if (replica.pull(model)) replica.end();
        CHECK(!replica.pull(model));
        replica.save(out, "");
        out.save(files / "file");
        CHECK_THROWS_AS(replica.restore(checkpoint::load(files / "file"), ""), rill::contract_violation);
    });
}
