// Residuals of error feedback in an elastic team: handed over by ranks that leave, declared as lost of ranks that die.
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/residuals.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using elastic_scene::part;
using rill::rank_t;

namespace {

constexpr std::uint64_t steps = 12;

elastic_scene::record train(int ranks, std::vector<rill::fault> planned, const std::vector<part>& parts) {
    elastic_scene::record all;
    sim::network net_of_all{.faults = {std::move(planned)}, .silence = rill::seconds(1), .longest = rill::seconds(100)};
    sim::run(ranks, net_of_all, [&](auto& net) {
        elastic_scene::live(net, steps, {.timeout = rill::seconds(20), .patience = rill::seconds(3)}, all, parts);
    });
    CHECK(elastic_scene::wrong_with(all, steps, false) == "");
    return all;
}

}  // namespace

TEST_CASE("a rank that leaves hands its residual to the next member, and nothing is lost") {
    for (rank_t leaver = 0; leaver < 4; ++leaver) {
        CAPTURE(leaver);
        const auto all = train(4, {}, {{.rank = leaver, .what = part::act::leaves, .step = 5}});
        CHECK(all.handed_over == 1);
        CHECK(all.lost.empty());
    }
}

TEST_CASE("two ranks that leave at once hand both residuals to the same member") {
    const auto all = train(
        5, {}, {{.rank = 1, .what = part::act::leaves, .step = 5}, {.rank = 2, .what = part::act::leaves, .step = 5}});
    CHECK(all.handed_over == 2);
    CHECK(all.lost.empty());
}

TEST_CASE("a rank that leaves soon after another one hands over the residual that it should have taken, too") {
    struct course {
        rank_t second;  ///< it leaves as soon as it has missed the first one, rank 1
        bool is_slow;   ///< rank 2, next to rank 1, takes residuals only after both have left
    };
    for (const course& of : {course{.second = 2, .is_slow = false}, course{.second = 3, .is_slow = true}}) {
        CAPTURE(of.second);
        std::vector<float> found(4), given(4);
        sim::run(4, {.latency = rill::microseconds(50)}, [&](auto& net) {
            rill::elastic team{
                net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(1)}};
            struct {
                std::vector<float> sum = std::vector<float>(4);
                rill::buffer pack() const {
                    const auto bytes = std::as_bytes(std::span(sum));
                    return {bytes.begin(), bytes.end()};
                }
                rill::buffer changes() const { return pack(); }
                void unpack(rill::byte_view from) {
                    std::ranges::copy(from, std::as_writable_bytes(std::span(sum)).begin());
                }
                void apply(rill::byte_view from) { unpack(from); }
            } state;
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.25}}.bind(4);
            const std::vector<float> own{1, 2, 3, 4};
            std::vector<float> update(4);
            bool has_missed = false;
            while (team.step() < 8) {
                if ((net.rank() == 1 && team.step() == 3) || (net.rank() == of.second && has_missed)) {
                    CHECK(rill::residual_norm(codec) > 0);
                    CHECK(team.leave(codec));
                    return;
                }
                if (of.is_slow && net.rank() == 2 && has_missed) net.sleep_until(net.now() + rill::milliseconds(2));
                const rill::view crew = team.settle(state, codec);
                const bool is_done =
                    team.attempt([&](auto& workers) { rill::all_reduce(workers, own, update, codec); });
                CHECK(team.lost().empty());
                has_missed = !is_done;
                if (!is_done) continue;
                state.sum = update;
                for (std::size_t i = 0; i < 4; ++i) {
                    given[i] += own[i];
                    if (net.rank() == 0) found[i] += update[i];
                }
            }
            team.finish();
            for (std::size_t i = 0; i < 4; ++i) found[i] += codec.residual()[i];
        });
        CHECK(found == given);
    }
}

TEST_CASE(
    "a step with several codecs: a rank that leaves hands over all residuals, and of one that dies all are lost") {
    constexpr std::uint64_t few = 8;
    constexpr rank_t gone = 1;
    for (const bool leaves : {true, false}) {
        CAPTURE(leaves);
        std::vector<float> found(12), given(12);
        std::vector<double> found_dense(8), given_dense(8);
        std::vector<double> norms;
        std::vector<rill::lost_residual> lost;
        sim::run(3, {.silence = rill::seconds(1), .longest = rill::seconds(100)}, [&](auto& net) {
            rill::elastic team{
                net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
            elastic_scene::model state;
            const rill::compress::error_feedback coding{rill::compress::top_k{.density = 0.3}};
            auto embedding = coding.bind(12);
            auto dense = coding.template bind<double>(8);
            while (team.step() < few) {
                const std::uint64_t step = team.step();
                if (net.rank() == gone && step == 4) {
                    if (leaves) CHECK(team.leave(embedding, dense));
                    return;  // or ends
                }
                const rill::view crew = team.settle(state, embedding, dense);
                const std::vector<float> all = elastic_scene::gradient(step, net.rank());
                const std::vector<float> own(all.begin(), all.begin() + 12);
                const std::vector<double> own_dense(all.begin() + 12, all.end());
                std::vector<float> update(12);
                std::vector<double> update_dense(8), sum(20);
                const bool is_done = team.attempt([&](auto& workers) {
                    rill::all_reduce(workers, own, update, embedding);
                    rill::all_reduce(workers, own_dense, update_dense, dense);
                });
                if (net.rank() != gone) lost.insert(lost.end(), team.lost().begin(), team.lost().end());
                if (!is_done) continue;
                state.add(sum);
                if (net.rank() == gone)
                    norms.push_back(std::hypot(rill::residual_norm(embedding), rill::residual_norm(dense)));
                if (net.rank() != 0) continue;
                for (std::size_t i = 0; i < 12; ++i) found[i] += update[i];
                for (std::size_t i = 0; i < 8; ++i) found_dense[i] += update_dense[i];
                for (const rank_t rank : crew.members) {
                    const std::vector<float> more = elastic_scene::gradient(step, rank);
                    for (std::size_t i = 0; i < 12; ++i) given[i] += more[i];
                    for (std::size_t i = 0; i < 8; ++i) given_dense[i] += static_cast<double>(more[12 + i]);
                }
            }
            team.finish();
            for (std::size_t i = 0; i < 12; ++i) found[i] += embedding.residual()[i];
            for (std::size_t i = 0; i < 8; ++i) found_dense[i] += dense.residual()[i];
        });
        CHECK((found == given) == leaves);
        CHECK((found_dense == given_dense) == leaves);
        CHECK(lost.size() == (leaves ? 0 : 2));  // on each of the others
        for (const rill::lost_residual& each : lost) CHECK(each == rill::lost_residual{gone, norms.back()});
    }
}

TEST_CASE("a residual that is refused where it is handed over is declared as lost") {
    std::vector<rill::lost_residual> lost;
    double norm = 0;
    sim::run(2, {.silence = rill::seconds(1), .longest = rill::seconds(100)}, [&](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
        elastic_scene::model state;
        const rill::compress::error_feedback coding{rill::compress::top_k{.density = 0.5}};
        auto codec = coding.bind(4), other = coding.bind(6);
        const std::vector<float> ones(4, 1.0F);
        std::vector<float> update(4);
        team.settle(state, codec);
        CHECK(team.attempt([&](auto& workers) { rill::all_reduce(workers, ones, update, codec); }));
        state.add(std::vector<double>(20));
        if (net.rank() == 1) {
            norm = rill::residual_norm(codec);
            CHECK(team.leave(codec));
            return;
        }
        int refused = 0;
        while (team.step() < 3) {
            try {
                refused == 0 ? team.settle(state, other) : team.settle(state, codec);
                if (!team.attempt([](auto&) {})) continue;
                state.add(std::vector<double>(20));
                lost.insert(lost.end(), team.lost().begin(), team.lost().end());
            } catch (const rill::protocol_error&) {
                ++refused;
            }
        }
        CHECK(refused == 1);
        team.finish();
    });
    CHECK(norm > 0);
    CHECK(lost == std::vector<rill::lost_residual>{{1, norm}});
}

TEST_CASE("codecs in another order, fewer or more are an error where a residual is handed over, and none changes") {
    for (const auto& [count, told] : {std::pair{1, "rank 1 gives more residuals than rank 0 has codecs"},
                                      {2, "has 4 elements"},
                                      {3, "rank 1 gives fewer residuals than rank 0 has codecs"}}) {
        std::string why;
        const int codecs = count;
        sim::run(2, {.silence = rill::seconds(1), .longest = rill::seconds(100)}, [&](auto& net) {
            rill::elastic team{
                net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
            elastic_scene::model state;
            const rill::compress::error_feedback coding{rill::compress::top_k{.density = 0.5}};
            auto one = coding.bind(4), other = coding.bind(6), third = coding.bind(4);
            team.settle(state);
            const std::vector<float> ones(4, 1.0F), more(6, 1.0F);
            std::vector<float> update(4), update_more(6);
            CHECK(team.attempt([&](auto& workers) {
                rill::all_reduce(workers, ones, update, one);
                rill::all_reduce(workers, more, update_more, other);
            }));
            state.add(std::vector<double>(20));
            if (net.rank() == 1) return void(team.leave(one, other));
            const std::vector<float> before(one.residual().begin(), one.residual().end());
            try {
                while (team.step() < 5) {
                    if (codecs == 1)
                        team.settle(state, one);
                    else if (codecs == 2)
                        team.settle(state, other, one);
                    else
                        team.settle(state, one, other, third);
                    (void)team.attempt([](auto&) {});
                }
            } catch (const rill::protocol_error& thrown) {
                why = thrown.what();
            }
            CHECK(std::vector<float>(one.residual().begin(), one.residual().end()) == before);
            team.finish();
        });
        CHECK_MESSAGE(why.find(told) != std::string::npos, why);
    }
}

TEST_CASE("the residual of a rank that dies is declared as lost, with its last known norm") {
    for (std::int64_t at = 1500; at < 3000; at += 100) {
        CAPTURE(at);
        const auto all = train(4, {faults::kill(2).at(rill::microseconds(at))}, {});
        // Two norms: a member that learns from the agreement that the last step with the rank is committed.
        CHECK((all.lost.size() == 1 || all.lost.size() == 2));
        for (const auto& [rank, norm] : all.lost) {
            CHECK(rank == 2);
            const std::vector<double>& known = all.lives[2].norms;
            CHECK(std::find(known.end() - std::min<std::ptrdiff_t>(2, std::ssize(known)), known.end(), norm) !=
                  known.end());
        }
    }
}

TEST_CASE("a rank that gives up a step which the others commit keeps what the step has left out") {
    constexpr int ranks = 3;
    constexpr std::uint64_t few = 6;
    int caught_up = 0;
    for (std::int64_t cut = 1260; cut < 1400; cut += 4) {
        CAPTURE(cut);
        std::vector<rill::fault> plan;
        for (const rank_t other : {0, 1}) {
            plan.push_back(faults::cut(other, 2).at(rill::microseconds(cut)));
            plan.push_back(faults::heal(other, 2).at(rill::seconds(15)));
        }
        bool is_left_out = false;
        std::vector<float> found(20), given(20);
        std::vector<std::vector<float>> updates(few);
        const sim::network on{.faults = {plan}, .silence = rill::seconds(1), .longest = rill::seconds(1000)};
        sim::run(ranks, on, [&](auto& net) {
            rill::elastic team{
                net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
            elastic_scene::model state;
            const rill::compress::error_feedback coding{rill::compress::top_k{.density = 0.3}};
            auto codec = coding.bind(12), second = coding.bind(8);
            std::uint64_t done = 0;
            while (team.step() < few) {
                try {
                    team.settle(state, codec, second);
                    caught_up += done < team.step() ? 1 : 0;
                    done = team.step();
                    if (done >= few) break;
                    net.sleep_until(net.now() + rill::microseconds(300));
                    // The others compute for so long that rank 2 gives up, and is heard again before they look for it.
                    if (net.rank() != 2 && done == 3) net.sleep_until(rill::time_point{} + rill::seconds(20));
                    std::vector<float> update(20);
                    const std::vector<float> own = elastic_scene::gradient(team.step(), net.rank());
                    const std::span<const float> from(own);
                    const std::span<float> to(update);
                    if (!team.attempt([&](auto& workers) {
                            rill::all_reduce(workers, from.first(12), to.first(12), codec);
                            rill::all_reduce(workers, from.last(8), to.last(8), second);
                        }))
                        continue;
                    state.add(std::vector<double>(update.begin(), update.end()));
                    updates[static_cast<std::size_t>(done++)] = update;
                } catch (const rill::no_quorum&) {
                    net.sleep_until(net.now() + rill::milliseconds(500));
                } catch (const rill::excluded&) {
                    is_left_out = true;
                    return;
                }
            }
            team.finish();
            std::vector<float> left(codec.residual().begin(), codec.residual().end());
            left.insert(left.end(), second.residual().begin(), second.residual().end());
            elastic_scene::add(found, left);
        });
        if (is_left_out) continue;
        for (std::uint64_t step = 0; step < few; ++step) {
            elastic_scene::add(found, updates[static_cast<std::size_t>(step)]);
            for (rank_t rank = 0; rank < ranks; ++rank) elastic_scene::add(given, elastic_scene::gradient(step, rank));
        }
        CHECK(found == given);
    }
    CHECK(caught_up > 0);
}

TEST_CASE(
    "a rank that leaves after it has given up a step which the others commit hands over what the step has left out") {
    constexpr rank_t leaver = 2;
    constexpr std::uint64_t few = 6;
    int given_up = 0;
    for (std::int64_t cut = 1100; cut < 1240; cut += 2) {
        CAPTURE(cut);
        std::vector<rill::fault> plan;
        for (const rank_t other : {0, 1}) {
            plan.push_back(faults::cut(other, leaver).at(rill::microseconds(cut)));
            plan.push_back(faults::heal(other, leaver).at(rill::seconds(15)));
        }
        bool is_handed_over = false;
        std::uint64_t steps_of_leaver = 0, own_steps_of_leaver = 0;
        std::vector<float> found(20), given(20);
        const sim::network on{.faults = {plan}, .silence = rill::seconds(1), .longest = rill::seconds(1000)};
        sim::run(3, on, [&](auto& net) {
            rill::elastic team{
                net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
            elastic_scene::model state;
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.3}}.bind(20);
            bool leaves = false;
            while (team.step() < few) {
                try {
                    if (leaves) {
                        is_handed_over = team.leave(codec);
                        return;
                    }
                    const rill::view crew = team.settle(state, codec);
                    const std::uint64_t step = team.step();
                    if (step >= few) break;
                    net.sleep_until(net.now() + rill::microseconds(300));
                    // The others compute for so long that the leaver gives up, and is heard again before they look for
                    // it.
                    if (net.rank() != leaver && step == 3) net.sleep_until(rill::time_point{} + rill::seconds(20));
                    std::vector<float> update(20);
                    const std::vector<float> own = elastic_scene::gradient(step, net.rank());
                    if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, own, update, codec); })) continue;
                    state.add(std::vector<double>(update.begin(), update.end()));
                    own_steps_of_leaver += net.rank() == leaver ? 1 : 0;
                    if (net.rank() != 0) continue;
                    elastic_scene::add(found, update);
                    steps_of_leaver += crew.contains(leaver) ? 1 : 0;
                    for (const rank_t rank : crew.members)
                        elastic_scene::add(given, elastic_scene::gradient(step, rank));
                } catch (const rill::no_quorum&) {
                    leaves = true;
                    net.sleep_until(net.now() + rill::milliseconds(500));
                } catch (const rill::excluded&) {
                    return;
                }
            }
            team.finish();
            elastic_scene::add(found, {codec.residual().begin(), codec.residual().end()});
        });
        if (!is_handed_over) continue;
        given_up += own_steps_of_leaver < steps_of_leaver ? 1 : 0;
        CHECK(found == given);
    }
    CHECK(given_up > 0);
}
