// Saving and restoring a pair averaging: each rank has a model of its own, and a file of its own.
#include "../support/scratch.hpp"

#include <rill/core/error.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using rill::pair_averaging;
using rill::simulated::endpoint;
using rill::train::checkpoint;

namespace {

constexpr int ranks = 4;
using vector = std::vector<double>;
using states = std::vector<std::pair<vector, std::uint64_t>>;  ///< of each rank: model and version

const rill::train::descent rule{rill::train::sgd{.momentum = 0.9}, rill::train::inverse_time{.c1 = 0.5, .c2 = 3}};

std::string file_of(const scratch_directory& directory, rill::rank_t rank) {
    return directory / std::to_string(rank).c_str();
}

/// Steps `from` to `to`, of which each begins at a time of its own, so that the order of all exchanges is known.
template <class Replica>
void make_steps(endpoint& net, Replica& replica, int from, int to) {
    vector model(5), gradient(5);
    replica.pull(model);  // the rank answers from now on
    for (int step = from; step < to; ++step) {
        const int offset = net.rank() % 2 == 0 ? 60 * net.rank() : 300 + 60 * net.rank();
        net.sleep_until(rill::time_point{} + rill::milliseconds(10 + step - from) + rill::microseconds(offset));
        const auto held = replica.pull(model);
        REQUIRE(held);
        for (std::size_t i = 0; i < model.size(); ++i)
            gradient[i] = 0.1 * model[i] - static_cast<double>(i) - 0.3 * net.rank();
        replica.push(gradient, *held);
    }
    replica.retire();
    CHECK(!replica.pull(model));
}

/// Runs these steps, from the files in `from` if there are any, and saves each rank's file in `to`.
states run(int first, int last, const scratch_directory* from, const scratch_directory* to) {
    states all(ranks);
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        pair_averaging replica{net, rill::topology::bipartite{}, rule, vector(5, 1.0), {.seed = 5}};
        if (from != nullptr) replica.restore(checkpoint::load(file_of(*from, net.rank())), "run.");
        make_steps(net, replica, first, last);
        all[static_cast<std::size_t>(net.rank())] = {vector(replica.newest().begin(), replica.newest().end()),
                                                     replica.version()};
        if (to == nullptr) return;
        checkpoint::writer out;
        replica.save(out, "run.");
        out.save(file_of(*to, net.rank()));
    });
    return all;
}

/// What each rank throws when it restores its file.
template <class File>
std::vector<std::string> refusals(int count, File&& file) {
    std::vector<std::string> texts(static_cast<std::size_t>(count));
    rill::simulated::run(count, {}, [&](endpoint& net) {
        pair_averaging replica{net, rill::topology::bipartite{}, rule, vector(5, 1.0), {.seed = 5}};
        texts[static_cast<std::size_t>(net.rank())] =
            message_of<std::exception>([&] { replica.restore(checkpoint::load(file(net.rank())), "run."); });
    });
    return texts;
}

}  // namespace

TEST_CASE("pair_averaging: goes on where it was saved, bit for bit") {
    const scratch_directory early, late;
    const states through = run(0, 9, nullptr, nullptr);
    run(0, 4, nullptr, &early);
    CHECK(run(4, 9, &early, &late) == through);
    CHECK(run(4, 9, &early, nullptr) == through);
    CHECK(run(9, 9, &late, nullptr) == through);
    CHECK(through[0].first != through[1].first);
    CHECK(through[0].second > 9);
}

TEST_CASE("pair_averaging: where one rank's file does not fit, all ranks throw") {
    const scratch_directory early, late;
    run(0, 4, nullptr, &early);
    run(4, 9, &early, &late);
    const auto all_say = [](const std::vector<std::string>& texts, const std::string& what) {
        for (const std::string& text : texts) {
            CAPTURE(text);
            CHECK(has(text, what));
        }
    };
    all_say(refusals(ranks, [&](rill::rank_t rank) { return file_of(early, rank == 2 ? 1 : rank); }),
            "rank 2 of 4 goes on from the state of rank 1 of 4");
    all_say(refusals(ranks, [&](rill::rank_t rank) { return file_of(rank == 3 ? late : early, rank); }),
            "rank 3 calls with another state that it goes on from");
    for (const std::string& text : refusals(3, [&](rill::rank_t rank) { return file_of(early, rank); })) {
        CAPTURE(text);
        CHECK(has(text, "of 3 goes on from the state of rank"));
    }
    CHECK(refusals(ranks, [&](rill::rank_t rank) { return file_of(early, rank); }) == std::vector<std::string>(ranks));
}

TEST_CASE("pair_averaging: what else a rank resumes is part of the agreement") {
    const scratch_directory files;
    run(0, 4, nullptr, &files);
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        pair_averaging replica{net, rill::topology::bipartite{}, rule, vector(5, 1.0)};
        const auto also = [&] {
            if (net.rank() == 1) throw std::runtime_error("no batches");
        };
        const auto restore = [&] { replica.restore(checkpoint::load(file_of(files, net.rank())), "run.", also); };
        if (net.rank() == 1)
            CHECK(message_of<std::runtime_error>(restore) == "no batches");
        else
            CHECK(has(message_of<rill::peer_failure>(restore), "rank 1: no batches"));
    });
}

TEST_CASE("pair_averaging: is saved after its end and restored before its first pull only") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        pair_averaging replica{net, rill::topology::bipartite{}, rule, vector(5, 1.0)};
        checkpoint::writer out;
        CHECK_THROWS_AS(replica.save(out, ""), rill::contract_violation);
        make_steps(net, replica, 0, 2);
        const scratch_directory directory;
        replica.save(out, "");
        out.save(directory / "file");
        CHECK_THROWS_AS(replica.restore(checkpoint::load(directory / "file"), ""), rill::contract_violation);
    });
}
