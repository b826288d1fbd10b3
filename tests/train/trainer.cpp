#include <rill/train/trainer.hpp>

#include "../support/allocations.hpp"
#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/collective/barrier.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/star.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/file.hpp>
#include <rill/train/partial_bsp.hpp>
#include <rill/train/sign_bsp.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace jobs;

namespace {

constexpr int ranks = 4;
using parameters_of_ranks = std::vector<std::vector<float>>;

/// The parameters of every rank after each of `steps` steps.
template <class Plan>
std::vector<std::vector<parameters_of_ranks>> trace(const Plan& plan, int steps,
                                                    const std::vector<spoilt_step>& faults) {
    std::vector<std::vector<parameters_of_ranks>> runs;
    const auto body = [&](auto& net) {
        auto trainer = make_trainer(net, plan, faults);
        for (auto& step : runs.back()) {
            step[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
            trainer.step();
        }
    };
    const auto empty = std::vector(static_cast<std::size_t>(steps), parameters_of_ranks(ranks));
    runs.push_back(empty);
    in_process::run(ranks, body);
    runs.push_back(empty);
    simulated::run(ranks, {}, body);
    return runs;
}

}  // namespace

TEST_CASE("trainer: parameters are the same bits on all ranks after every step, on either transport") {
    for_each_plan([](const auto& plan) {
        const auto runs = trace(plan, 12, {{.rank = 2, .step = 5, .coordinate = 4}});
        CHECK(runs[0] == runs[1]);
        for (std::size_t step = 0; step < runs[0].size(); ++step) {
            for (const auto& parameters : runs[0][step]) CHECK(parameters == runs[0][step][0]);
            if (step == 0) continue;
            const bool skipped = step == 6;
            CHECK((runs[0][step] == runs[0][step - 1]) == skipped);
        }
    });
}

TEST_CASE("trainer: the loss falls") {
    for_each_plan([](const auto& plan) {
        std::vector<double> first(ranks), last(ranks);
        in_process::run(ranks, [&](auto& net) {
            auto trainer = make_trainer(net, plan);
            const auto rank = static_cast<std::size_t>(net.rank());
            for (int step = 0; step < 40; ++step) {
                const double loss = trainer.step().loss;
                (step < 5 ? first : last)[rank] += step < 5 || step >= 35 ? loss : 0;
            }
        });
        for (std::size_t rank = 0; rank < ranks; ++rank) CHECK(last[rank] < 0.75 * first[rank]);
    });
}

TEST_CASE("trainer: all ranks skip a step in which any gradient is not finite, and know whose it was") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<spoilt_step> faults{{.rank = 1, .step = 2, .coordinate = 50},
                                          {.rank = 1, .step = 2, .coordinate = 7},
                                          {.rank = 0, .step = 4, .coordinate = 0, .value = -infinity},
                                          {.rank = 3, .step = 4, .coordinate = 146, .value = infinity}};
    for_each_plan([&](const auto& plan) {
        std::vector<std::vector<train::step_record>> records(ranks);
        on_transports(ranks, [&](auto& net) {
            auto& own = records[static_cast<std::size_t>(net.rank())];
            own.clear();
            auto trainer = make_trainer(net, plan, faults);
            while (trainer.step_number() < 6) own.push_back(trainer.step());
        });
        for (const auto& own : records) {
            for (std::size_t step = 0; step < 6; ++step) CHECK(own[step].skipped() == (step == 2 || step == 4));
            CHECK(own[2].invalid == std::vector<train::invalid_gradient>{{1, 7}});
            CHECK(own[2].exchange.contributors == 3);
            CHECK(own[4].invalid == std::vector<train::invalid_gradient>{{0, 0}, {3, 146}});
            CHECK(own[4].step == 4);
        }
    });
}

TEST_CASE("trainer: continues when no rank has a finite gradient, and with a single rank") {
    for_each_plan([](const auto& plan) {
        for (int size : {1, 2}) {
            std::vector<int> skipped(static_cast<std::size_t>(size));
            on_transports(size, [&](auto& net) {
                auto trainer = make_trainer(net, plan, {{.rank = 0, .step = 1}, {.rank = 1, .step = 1}});
                int count = 0;
                while (trainer.step_number() < 3) count += trainer.step().skipped() ? 1 : 0;
                skipped[static_cast<std::size_t>(net.rank())] = count;
            });
            CHECK(skipped == std::vector<int>(skipped.size(), 1));
        }
    });
}

TEST_CASE("trainer: the record's bytes are those that the transport counts") {
    for_each_plan([](const auto& plan) {
        std::vector<int> agree(ranks);
        on_transports(ranks, [&](auto& net) {
            auto trainer = make_trainer(net, plan, {{.rank = 2, .step = 1}});
            bool same = true;
            for (int step = 0; step < 4; ++step) {
                const traffic before = net.counted();
                const traffic recorded = trainer.step().exchange.wire;
                same = recorded == net.counted() - before && same;
            }
            agree[static_cast<std::size_t>(net.rank())] = same ? 1 : 0;
        });
        CHECK(agree == std::vector<int>(ranks, 1));
    });
}

TEST_CASE("trainer: resumes from a checkpoint bit for bit") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const std::vector<spoilt_step> faults{{.rank = 1, .step = 9, .coordinate = 3}};
    for_each_plan([&](const auto& plan) {
        parameters_of_ranks through(ranks), resumed(ranks);
        // Epochs of 7 steps, of which one ends before and one after the checkpoint.
        const auto whole = [&](auto& net) {
            auto trainer = make_trainer(net, plan, faults);
            while (trainer.step_number() < 30) {
                if (trainer.step_number() == 15) {
                    train::checkpoint::writer out;
                    trainer.save(out, "job.");
                    out.save(path(net.rank()));
                }
                trainer.step();
            }
            through[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
        };
        const auto second_half = [&](auto& net) {
            auto trainer = make_trainer(net, plan);
            trainer.restore(train::checkpoint::load(path(net.rank())), "job.");
            while (trainer.step_number() < 30) trainer.step();
            resumed[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
        };
        in_process::run(ranks, whole);
        in_process::run(ranks, second_half);
        CHECK(resumed == through);
        simulated::run(ranks, {}, whole);
        simulated::run(ranks, {}, second_half);
        CHECK(resumed == through);
    });
}

TEST_CASE("trainer: a run that has ended goes on from a checkpoint") {
    const scratch_directory directory;
    simulated::run(ranks, {}, [&](auto& net) {
        const auto path = directory / std::to_string(net.rank()).c_str();
        auto trainer = make_trainer(net, sparse_plan);
        while (trainer.step_number() < 5) trainer.step();
        train::checkpoint::writer out;
        trainer.save(out, "");
        out.save(path);
        while (trainer.step_number() < 9) trainer.step();
        const auto wanted = copy_of_parameters(trainer);
        trainer.end();
        CHECK(!trainer.step());
        trainer.restore(train::checkpoint::load(path), "");
        while (trainer.step_number() < 9) REQUIRE(trainer.step());
        CHECK(copy_of_parameters(trainer) == wanted);
    });
}

TEST_CASE("trainer: refuses a checkpoint that does not fit, and is unchanged") {
    const scratch_directory directory;
    const std::string path = directory / "saved";
    in_process::run(1, [&](auto& net) {
        auto saved = make_trainer(net, sparse_plan, {}, 8);
        saved.step();
        train::checkpoint::writer out;
        saved.save(out, "");
        out.save(path);
        const auto file = train::checkpoint::load(path);

        auto other_seed = make_trainer(net, sparse_plan, {}, 9);
        const auto before = copy_of_parameters(other_seed);
        CHECK(has(message_of<train::data_error>([&] { other_seed.restore(file, ""); }),
                  "seed of the group: expected 9, found 8"));
        CHECK(copy_of_parameters(other_seed) == before);
        CHECK(other_seed.step_number() == 0);

        const train::compressed_bsp without_residual{topology::split_allgather{}, compress::keep_all{}, with_momentum,
                                                     rate};
        const auto refusal_of = [&](const auto& plan) {
            train::checkpoint::writer other;
            make_trainer(net, plan, {}, 9).save(other, "");
            other.save(path);
            return message_of<train::data_error>([&] { other_seed.restore(train::checkpoint::load(path), ""); });
        };
        CHECK(has(refusal_of(without_residual), "no such section"));
        CHECK(has(refusal_of(dense_plan), "expected compressed_bsp, found bsp"));
        CHECK(copy_of_parameters(other_seed) == before);
    });
    std::vector<std::string> messages(2);
    in_process::run(2, [&](auto& net) {
        auto trainer = make_trainer(net, dense_plan, {}, 9);
        const auto file = train::checkpoint::load(path);
        messages[static_cast<std::size_t>(net.rank())] =
            message_of<train::data_error>([&] { trainer.restore(file, ""); });
    });
    CHECK(has(messages[0], "number of ranks: expected 2, found 1"));
    CHECK(has(messages[1], "rank: expected 1, found 0"));
}

TEST_CASE("trainer: files that do not belong together are refused on all ranks") {
    const scratch_directory directory;
    const auto path = [&](const char* what, rank_t rank) { return directory / (what + std::to_string(rank)).c_str(); };
    const auto run_and_save = [&](const char* what, std::uint64_t steps, std::vector<spoilt_step> faults,
                                  bool has_barrier = false) {
        in_process::run(3, [&](auto& net) {
            auto trainer = make_trainer(net, dense_plan, faults);
            while (trainer.step_number() < steps) trainer.step();
            if (has_barrier) barrier(trainer.strategy().workers());
            train::checkpoint::writer out;
            trainer.save(out, "");
            out.save(path(what, net.rank()));
        });
    };
    run_and_save("usual", 2, {});
    run_and_save("early", 1, {});
    run_and_save("skipped", 2, {{.rank = 0, .step = 1}});
    run_and_save("met", 2, {}, true);
    const auto messages_with = [&](const char* odd) {
        std::vector<std::string> messages(3);
        in_process::run(3, [&](auto& net) {
            auto trainer = make_trainer(net, dense_plan);
            const auto file = train::checkpoint::load(path(net.rank() == 2 ? odd : "usual", net.rank()));
            messages[static_cast<std::size_t>(net.rank())] =
                message_of<train::data_error>([&] { trainer.restore(file, ""); });
            trainer.step();  // the group can continue
        });
        return messages;
    };
    for (const auto& message : messages_with("early"))
        CHECK(has(message, "compared with the file of rank 2: expected step 2 as on rank 0, found 1"));
    for (const char* odd : {"skipped", "met"})
        for (const auto& message : messages_with(odd))
            CHECK(has(message,
                      "compared with the file of rank 2: expected the parameters that rank 0 has, after as "
                      "many operations"));
    for (const auto& message : messages_with("usual")) CHECK(message.empty());
}

TEST_CASE("trainer: a file that is missing or damaged on one rank is refused on all ranks at once") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
    const train::partial_bsp rooted{topology::star{}, straggler::wait_all{}, with_momentum, rate};
    const auto refusals = [&](const auto& plan, bool is_damaged) {
        std::vector<std::string> messages(3);
        simulated::run(3, {}, [&](auto& net) {
            auto trainer = make_trainer(net, plan);
            trainer.step();
            train::checkpoint::writer out;
            trainer.save(out, "");
            if (net.rank() != 1) out.save(path(net.rank()));
            if (net.rank() == 1 && is_damaged) train::replace_file(path(1), std::vector<std::byte>(100));
            const time_point begin = net.now();
            messages[static_cast<std::size_t>(net.rank())] =
                message_of<train::data_error>([&] { trainer.restore(train::checkpoint::open(path(net.rank())), ""); });
            CHECK(net.now() - begin < milliseconds(100));
            CHECK(trainer.step_number() == 1);
            trainer.step();  // all go on
            CHECK(trainer.step_number() == 2);
            trainer.end();
        });
        std::filesystem::remove(path(1));
        for (const rank_t rank : {0, 2})
            CHECK(has(messages[static_cast<std::size_t>(rank)],
                      "compared with the file of rank 1: expected one that fits that rank, found another"));
        return messages[1];
    };
    CHECK(has(refusals(dense_plan, false), "cannot be opened"));
    CHECK(has(refusals(dense_plan, true), "expected \"rillckpt\", found other bytes"));
    CHECK(has(refusals(rooted, false), "cannot be opened"));
}

TEST_CASE("trainer: each rank tells why a file is refused, also where their exceptions end the run") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
    rank_t refusing = 0;
    std::vector<std::string> messages;
    const auto body = [&](auto& net) {
        auto trainer = make_trainer(net, dense_plan);
        train::checkpoint::writer out;
        trainer.save(out, "");
        if (net.rank() != refusing) out.save(path(net.rank()));
        std::string& message = messages[static_cast<std::size_t>(net.rank())];
        try {
            trainer.restore(train::checkpoint::open(path(net.rank())), "");
        } catch (const train::data_error& refused) {
            message = refused.what();
            throw;
        }
    };
    const auto require_reason = [&](auto&& run) {
        std::filesystem::remove(path(refusing));
        messages.assign(ranks, "");
        const std::string reason = path(refusing) + ": cannot be opened";
        CHECK(has(message_of<train::data_error>(run), reason.c_str()));
        for (const std::string& message : messages) CHECK(has(message, reason.c_str()));
    };
    for (refusing = 0; refusing < ranks; ++refusing) {
        require_reason([&] { simulated::run(ranks, {.latency = microseconds(50)}, body); });
        for (int i = 0; i < 10; ++i) require_reason([&] { in_process::run(ranks, body); });
    }
}

TEST_CASE("trainer: a file that is refused changes no bit of the steps that follow") {
    for_each_plan([](const auto& plan) {
        parameters_of_ranks through(3), refused(3);
        for (auto* reached : {&through, &refused})
            simulated::run(3, {}, [&](auto& net) {
                auto trainer = make_trainer(net, plan);
                trainer.step();
                if (reached == &refused)
                    CHECK_THROWS_AS(trainer.restore(train::checkpoint::open("none"), ""), train::data_error);
                for (int step = 0; step < 3; ++step) trainer.step();
                (*reached)[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
            });
        CHECK(refused == through);
    });
}

TEST_CASE("trainer: swapped files of two ranks are refused on all ranks, and all continue") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
    std::vector<std::string> messages(3);
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = make_trainer(net, dense_plan);
        trainer.step();
        train::checkpoint::writer out;
        trainer.save(out, "");
        out.save(path(net.rank()));
        barrier(trainer.strategy().workers());
        const auto file = train::checkpoint::load(path(net.rank() == 2 ? 2 : 1 - net.rank()));
        messages[static_cast<std::size_t>(net.rank())] =
            message_of<train::data_error>([&] { trainer.restore(file, ""); });
        CHECK(trainer.step_number() == 1);
        trainer.step();
    });
    CHECK(has(messages[0], "section \"trainer\", rank: expected 0, found 1"));
    CHECK(has(messages[1], "section \"trainer\", rank: expected 1, found 0"));
    CHECK(has(messages[2], "compared with the file of rank 0: expected one that fits that rank, found another"));
}

namespace {

/// `bsp` under no name, as its files were before strategies had names.
struct nameless_bsp {
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;

    template <std::floating_point T, class Net>
    auto bind(Net& net, std::span<const layer> layers, const group_options& options) const {
        return dense_plan.bind<T>(net, layers, options);
    }
};

/// What `Restored` says to the files of two ranks that `Saved` has written, and at which step it then stands.
template <class Saved, class Restored>
std::pair<std::string, std::uint64_t> read_by(const Saved& saved, const Restored& restored) {
    const scratch_directory directory;
    std::pair<std::string, std::uint64_t> told;
    simulated::run(2, {}, [&](auto& net) {
        const std::string path = directory / std::to_string(net.rank()).c_str();
        train::checkpoint::writer out;
        {
            auto trainer = make_trainer(net, saved);
            trainer.step();
            trainer.save(out, "");
        }
        out.save(path);
        auto trainer = make_trainer(net, restored);
        const std::string message =
            message_of<train::data_error>([&] { trainer.restore(train::checkpoint::open(path), ""); });
        if (net.rank() == 0) told = {message, trainer.step_number()};
    });
    return told;
}

}  // namespace

TEST_CASE("trainer: a file of another strategy is refused, and the message names both") {
    const train::sign_bsp votes{topology::ring{}, with_momentum, rate};
    const train::compressed_bsp whole{topology::ring{}, compress::keep_all{}, with_momentum, rate};
    const train::partial_bsp rooted{topology::star{}, straggler::wait_all{}, with_momentum, rate};
    const train::decentralized mixed{topology::ring_neighbours{}, with_momentum, rate};
    const auto refused = [](const auto& saved, const auto& restored) {
        const auto [message, step] = read_by(saved, restored);
        CHECK_MESSAGE(has(message, "section \"strategy\": expected " + std::string(restored.name) + ", found " +
                                       std::string(saved.name)),
                      message);
        CHECK(step == 0);
    };
    refused(votes, dense_plan);
    refused(whole, dense_plan);
    refused(dense_plan, votes);
    refused(dense_plan, whole);
    refused(dense_plan, overlapped_plan);
    refused(rooted, dense_plan);
    refused(mixed, rooted);
    CHECK(read_by(votes, votes) == std::pair(std::string(), std::uint64_t{1}));
    CHECK(read_by(dense_plan, dense_plan).second == 1);
}

TEST_CASE("trainer: a file that holds state of a codec is refused by a codec without it, and the other way round") {
    const train::compressed_bsp gathers{topology::ring{}, compress::error_feedback{compress::top_k{.count = 3}},
                                        with_momentum, rate};
    const train::compressed_bsp drops{topology::ring{}, compress::top_k{.count = 3}, with_momentum, rate};
    const train::compressed_bsp corrects{topology::ring{}, compress::momentum_correction{gathers.codec}, with_momentum,
                                         rate};
    const auto refused = [](const auto& saved, const auto& restored, const std::string& part,
                            const std::string& found) {
        const auto [message, step] = read_by(saved, restored);
        CHECK_MESSAGE((has(message, "\"codec." + part + "\": expected ") && has(message, "found " + found)), message);
        CHECK(step == 0);
    };
    refused(gathers, drops, "residual", "state that would be lost");
    refused(drops, gathers, "residual", "no such section");
    refused(corrects, gathers, "velocity", "state that would be lost");
    refused(gathers, corrects, "velocity", "no such section");
    CHECK(read_by(gathers, gathers).second == 1);
    CHECK(read_by(drops, drops).second == 1);
}

TEST_CASE("trainer: a file that names no strategy is read") {
    CHECK(read_by(nameless_bsp{}, dense_plan) == std::pair(std::string(), std::uint64_t{1}));
    CHECK(read_by(dense_plan, nameless_bsp{}) == std::pair(std::string(), std::uint64_t{1}));
}

TEST_CASE("trainer: a rank that starts with other parameters is refused on all ranks") {
    for_each_plan([](const auto& plan) {
        on_transports(3, [&](auto& net) {
            const std::uint64_t key = net.rank() == 1 ? 4 : 3;
            const auto make = [&] {
                train::trainer{
                    net,
                    train::perceptron<float>{{12, 9, 3}},
                    train::minibatches{data(), {.batch = 8, .rank = net.rank(), .ranks = net.size(), .key = {2}}},
                    plan,
                    {.initial = {key}}};
            };
            const std::string message = message_of<mismatch>(make);
            CHECK_MESSAGE(has(message, "rank 1 calls with another first model"), message);
        });
    });
}

TEST_CASE("trainer: a step allocates nothing once the first ones are done") {
    for_each_plan([](const auto& plan) {
        unsigned long count = 0;  // on all ranks, which share a thread
        simulated::run(ranks, {}, [&](auto& net) {
            auto trainer = make_trainer(net, plan);
            // Mailboxes and streams fill differently from step to step, so that it takes some steps to see their
            // largest use.
            while (trainer.step_number() < 300) trainer.step();
            barrier(trainer.strategy().workers());
            const unsigned long before = allocations();
            barrier(trainer.strategy().workers());
            while (trainer.step_number() < 310) trainer.step();
            barrier(trainer.strategy().workers());
            if (net.rank() == 0) count = allocations() - before;
            barrier(trainer.strategy().workers());
        });
        CHECK(count == 0);
    });
}
