// Provokes each error whose message docs/errors.md shows, and compares the message with the document.

#include "document.hpp"

#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/rill.hpp>
#include <rill/session/survivors.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/descent.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#if __has_include(<mpi.h>)
#include <rill/transport/mpi.hpp>
#endif

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace rill;

/// Runs `body(net)` on four ranks and returns the message that rank 0 got, which must be that of an `Error`.
template <class Error, class Body>
std::string told(Body body, bool all_alike = true) {
    std::array<std::string, 4> messages;
    try {
        simulated::run(4, {}, [&](auto& net) {
            try {
                body(net);
            } catch (const Error& failed) {
                messages[static_cast<std::size_t>(net.rank())] = failed.what();
            }
        });
    } catch (const Error& failed) {
        if (messages[0].empty()) messages[0] = failed.what();
    }
    if (all_alike)
        for (const std::string& each : messages) CHECK(each == messages[0]);
    return messages[0];
}

void require_message(const std::string& message) {
    REQUIRE(!message.empty());
    CHECK_MESSAGE(read_document("errors.md").find("\n" + message + "\n") != std::string::npos,
                  "errors.md should have the line\n"
                      << message);
}

const group_options patient{.timeout = seconds(2)};

}  // namespace

TEST_CASE("peer_failure") {
    std::string message;
    const auto body = [&](auto& net) {
        try {
            group workers{net, topology::ring{}};
            std::vector<float> values(10);
            if (net.rank() == 2) throw std::runtime_error("no more images");
            all_reduce(workers, values, values);
        } catch (const peer_failure& failed) {
            CHECK(failed.culprit() == 2);
            message = failed.what();
        }
    };
    CHECK_THROWS_AS(simulated::run(4, {}, body), std::runtime_error);
    require_message(message);
    require_message(told<peer_failure>(
        [](auto& net) {
            group workers{net, topology::ring{}};
            std::vector<float> values(10);
            all_reduce(workers, values, values);
            if (net.rank() != 2) all_reduce(workers, values, values);
        },
        false));
}

TEST_CASE("mismatch") {
    require_message(told<mismatch>([](auto& net) {
        group workers{net, topology::ring{}, patient};
        std::vector<float> values(net.rank() == 1 ? 11 : 10);
        all_reduce(workers, values, values);
    }));
    require_message(told<mismatch>([](auto& net) {
        group workers{net, topology::ring{}, patient};
        std::vector<float> values(10);
        if (net.rank() == 3)
            barrier(workers);
        else
            all_reduce(workers, values, values);
    }));
    require_message(told<mismatch>([](auto& net) {
        group workers{net, topology::ring{}, {.timeout = seconds(2), .seed = net.rank() == 1 ? 7U : 0U}};
    }));
}

TEST_CASE("rounds") {
    const auto one_round = [](auto& net, std::size_t size) {
        group workers{net, topology::star{}, patient};
        rounds steps{workers, topology::star{}};
        std::vector<float> model(3), own(size), update(size);
        while (steps.next(model)) {
            if (size == 9 && net.rank() == 3) net.sleep_until(net.now() + seconds(100));
            steps.reduce(own, update);
        }
    };
    require_message(told<mismatch>([&](auto& net) { one_round(net, net.rank() == 1 ? 11 : 10); }));
    require_message(told<timeout>([&](auto& net) { one_round(net, 9); }, false));
}

TEST_CASE("timeout") {
    require_message(told<timeout>([](auto& net) {
        group workers{net, topology::ring{}, patient};
        std::vector<float> values(10);
        if (net.rank() == 3) net.sleep_until(net.now() + seconds(100));
        all_reduce(workers, values, values);
    }));
}

TEST_CASE("invalid_value") {
    require_message(told<invalid_value>([](auto& net) {
        group workers{net, topology::split_allgather{}};
        std::vector<float> gradient(100, 1.0F), update(100);
        if (net.rank() == 2) gradient[17] = std::nanf("");
        auto codec = compress::error_feedback{compress::top_k{.count = 3}}.bind(gradient.size());
        all_reduce(workers, gradient, update, codec);
    }));
    require_message(told<invalid_value>([](auto& net) {
        group workers{net, topology::ring{}};
        stream<float> own(100), all;
        own.push_back(5, 1.0F);
        if (net.rank() != 0 && net.rank() != 3) own.clear({0, 100});
        all_gather(workers, own, all);
    }));
    require_message(told<invalid_value>([](auto& net) {
        group workers{net, topology::split_allgather{}};
        stream<float> own(100), sum;
        for (const std::size_t i : {8U, 9U, 10U, 11U})
            if (net.rank() != 2 || i != 10) own.push_back(i, 1.0F);
        const coding rows{.indices = index_coding::whole_rows, .row = 4};
        all_reduce(workers, own, sum, aggregate::sum{}, {rows, rows, rows});
    }));
}

TEST_CASE("protocol_error") {
    require_message(told<protocol_error>(
        [](auto& net) {
            if (net.rank() == 1) net.post(0, {.context = 5, .tag = 1}, buffer(10));
            std::array<std::byte, 8> room;
            const byte_span target(room);
            if (net.rank() == 0) net.receive_into(1, {.context = 5, .tag = 1}, {&target, 1}, deadline::never);
        },
        false));
}

TEST_CASE("protocol_error of a frame") {
    wire::header_block block{};
    wire::encode({.kind = operation::all_reduce,
                  .element = element_type::float32,
                  .index_bytes = 4,
                  .dimension = 10,
                  .range = {0, 10},
                  .count = 1,
                  .index_length = 4},
                 block.data());
    buffer bytes(block.begin(), block.end());
    const std::uint32_t index = 10;  // of 0 … 9
    const float value = 1;
    const auto append = [&](const auto& x) {
        const auto* first = reinterpret_cast<const std::byte*>(&x);
        bytes.append(first, first + sizeof x);
    };
    append(index);
    append(value);
    try {
        frame_reader reader{byte_pieces(bytes)};
        frame_scratch<float, std::uint32_t> room;
        content_of(reader.next<float, std::uint32_t>(), room);
        FAIL("the index is out of range");
    } catch (const protocol_error& failed) {
        require_message(failed.what());
    }
}

TEST_CASE("protocol_error of coded indices") {
    const std::byte descending[] = {std::byte{7}, std::byte{3}};  // low bits 3 and 1; equal upper bits
    std::uint32_t room[2];
    try {
        kernel::decode_indices(index_coding::elias_fano, descending, 2, {0, 12}, std::span<std::uint32_t>(room));
        FAIL("decoded");
    } catch (const protocol_error& failed) {
        require_message(failed.what());
    }
}

TEST_CASE("a rank that the others took for dead") {
    std::string message;
    simulated::run(3, {}, [&](auto& net) {
        survivors alive{net, seconds(5)};
        try {
            alive.run([&](auto& members) {
                if (net.rank() == 0) net.sleep_until(net.now() + seconds(60));
                group all{members, topology::ring{}, {.timeout = seconds(5)}};
            });
        } catch (const timeout& excluded) {
            message = excluded.what();
        }
    });
    require_message(message);
}

/// What a member of an elastic team throws in the end. The rank `odd` calls a barrier more than the others.
template <class Error>
std::string told_by_team(int ranks, rank_t teller, const simulated::network& network, const elastic_options& options,
                         bool leaves = false, rank_t odd = no_rank) {
    struct nothing {
        static buffer pack() { return {}; }
        static buffer changes() { return {}; }
        void unpack(byte_view) {}
        void apply(byte_view) {}
    };
    std::string message;
    simulated::run(ranks, network, [&](auto& net) {
        elastic team{net, topology::ring{}, options};
        nothing state;
        try {
            while (team.step() < 10) {
                if (leaves && net.rank() == teller) team.leave();
                team.settle(state);
                net.sleep_until(net.now() + milliseconds(1));
                team.attempt([&](auto& workers) {
                    barrier(workers);
                    if (net.rank() == odd) barrier(workers);
                });
            }
            team.finish();
        } catch (const Error& thrown) {
            if (net.rank() == teller) message = thrown.what();
        }
    });
    return message;
}

TEST_CASE("mismatch: the end of a step") {
    require_message(told_by_team<mismatch>(4, 0, {}, {.timeout = seconds(5)}, false, 3));
}

TEST_CASE("excluded and no_quorum") {
    const auto both_die = {faults::kill(0).at(milliseconds(4)), faults::kill(1).at(milliseconds(4))};
    require_message(told_by_team<excluded>(3, 0, {}, {.timeout = seconds(5)}, true));
    require_message(told_by_team<no_quorum>(4, 2, {.faults = {both_die}}, {.timeout = seconds(5)}));
    require_message(told_by_team<no_quorum>(3, 0, {.faults = {{faults::kill(2).at(milliseconds(4))}}},
                                            {.least = 3, .timeout = seconds(2)}));
}

TEST_CASE("deadlock") {
    require_message(told<deadlock>(
        [](auto& net) { net.receive((net.rank() + 1) % net.size(), {.context = 5, .tag = 1}, deadline::never); }));
}

TEST_CASE("contract_violation") {
    std::string message = told<contract_violation>([](auto& net) {
        group workers{net, topology::ring{}};
        std::vector<float> input(10), output(9);
        all_reduce(workers, input, output);
    });
    message.erase(message.rfind(" at "));  // the place in the sources
    require_message(message + " at …");
}

TEST_CASE("contract_violation of links") {
    const auto message_of = [](const topology::bandwidth_matching& mixing, int size) {
        std::string message;
        try {
            (void)mixing.bind(size, {});
        } catch (const contract_violation& refused) {
            message = refused.what();
        }
        require_message(message);
    };
    message_of({.links = {0, 1, 1, 1, 0, 1, 1, -1, 0}}, 3);
    message_of({.links = std::vector<double>(32 * 32), .window = 4}, 32);
}

TEST_CASE("errors.md shows the messages of a gossip with a coordinator") {
    const auto rank_2_is_told = [](const simulated::network& network, duration pause) {
        std::string message;
        simulated::run(4, network, [&](auto& net) {
            group workers{net, topology::ring{}, {.timeout = seconds(10)}};
            gossip saps{workers, topology::random_matching{}, coordinated{.rounds = 8, .patience = seconds(40)}};
            std::vector<float> model(4);
            net.sleep_until(time_point{seconds(1).ns});
            try {
                while (saps.next()) {
                    net.sleep_until(net.now() + seconds(1));
                    if (net.rank() == 2 && saps.round() == 4) net.sleep_until(net.now() + pause);
                    saps.mix(model);
                }
            } catch (const error& failed) {
                CHECK((net.rank() == 2 || pause == duration{}));
                if (net.rank() == 2) message = failed.what();
            }
        });
        require_message(message);
    };
    simulated::network network;
    rank_2_is_told(network, seconds(60));
    network.faults.faults = {faults::kill(0).at(milliseconds(4500))};
    rank_2_is_told(network, {});
    network.faults.faults = {faults::cut(0, 2).at(milliseconds(500))};
    rank_2_is_told(network, {});
}

TEST_CASE("data_error") {
    try {
        train::checkpoint::load("step-1000.ckpt");
        FAIL("there is no such file");
    } catch (const train::data_error& failed) {
        require_message(failed.what());
    }
}

#if __has_include(<mpi.h>)
TEST_CASE("library_error") {
    try {
        const mpi::endpoint net(MPI_COMM_WORLD);
        FAIL("MPI is not running");
    } catch (const mpi::library_error& failed) {
        require_message(failed.what());
    }
}
#endif

TEST_CASE("errors.md shows the message of a rank that is cut off from the others") {
    simulated::network network;
    network.faults.faults.push_back(faults::cut_between(0, any_rank).at(milliseconds(3)));
    std::string message;
    simulated::run(4, network, [&](auto& net) {
        std::vector<double> model(2);
        pair_averaging replica{net, topology::bipartite{}, train::descent{}, model, patient};
        try {
            for (int step = 0; const auto held = replica.pull(model); ++step) {
                if (step == 9) replica.retire();
                if (step < 9) replica.push(model, *held);
                net.sleep_until(net.now() + milliseconds(1));
            }
        } catch (const timeout& failed) {
            CHECK(net.rank() == 0);
            message = failed.what();
        }
    });
    require_message(message);
}
