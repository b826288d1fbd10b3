#include <rill/cost/choose.hpp>

#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/receipt.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/measure_costs.hpp>
#include <rill/cost/predict.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../collective/topologies.hpp"
#include "simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace rill;

constexpr std::uint64_t gigabit = 125'000'000;

/// Gigabit Ethernet with short latency: each rank sends one message at a time and receives one.
const simulated::network ethernet{.latency = microseconds(5), .bandwidth = gigabit, .cards = [](rank_t) {
                                      return network_card::full_duplex(gigabit);
                                  }};

/// What each rank chooses: all the same.
cost::exchange_choice chosen(int ranks, const simulated::network& net, const cost::gradient_shape& gradient) {
    std::vector<cost::exchange_choice> all(static_cast<std::size_t>(ranks));
    simulated::run(ranks, net, [&](simulated::endpoint& self) {
        all[static_cast<std::size_t>(self.rank())] = cost::choose(self, gradient);
    });
    for (const cost::exchange_choice& each : all) {
        CHECK(each.topology == all[0].topology);
        CHECK(each.codings == all[0].codings);
        CHECK(each.reason() == all[0].reason());
    }
    return all[0];
}

template <class Shape>
duration dense_time(const Shape& shape, int ranks, std::size_t dimension, const simulated::network& net) {
    std::vector<float> data(dimension, 1.0F);
    return support::simulate(ranks, net, shape,
                             [&](auto& workers) {
                                 std::vector<float> sum(dimension);
                                 return all_reduce(workers, data, sum);
                             })
        .elapsed;
}

template <class Shape>
duration stream_time(const Shape& shape, int ranks, const cost::gradient_shape& gradient, const stream_codings& codings,
                     const simulated::network& net) {
    return support::simulate(ranks, net, shape,
                             [&](auto& workers) {
                                 stream<float> mine(gradient.dimension), sum;
                                 random_sequence random(random_key{7}.derive(static_cast<unsigned>(workers.rank())));
                                 for (std::size_t i = 0; i < gradient.dimension; ++i)
                                     if (random.bits() * 0x1p-32 < gradient.density) mine.push_back(i, 1.0F);
                                 return all_reduce(workers, mine, sum, aggregate::sum{}, codings);
                             })
        .elapsed;
}

double ratio(duration a, duration b) { return a.seconds() / b.seconds(); }

}  // namespace

TEST_CASE("choose: the dense choice is the fastest shape of the simulated network, and takes the predicted time") {
    for (const int ranks : {2, 3, 8})
        for (const std::size_t dimension : {1U, 3000U, 60'000U}) {
            CAPTURE(ranks);
            CAPTURE(dimension);
            const auto best = chosen(ranks, ethernet, {.dimension = dimension});
            CHECK(!best.compress);
            CHECK(best.reason().starts_with("Do not compress: " + std::string(best.topology.shape_name())));
            duration least = seconds(1000);
            cases::for_each_topology(
                [&](const auto& shape) { least = std::min(least, dense_time(shape, ranks, dimension, ethernet)); });
            const duration seen = dense_time(best.topology, ranks, dimension, ethernet);
            CHECK(ratio(seen, least) <= 1.01);
            CHECK(ratio(best.expected, seen) == doctest::Approx(1).epsilon(0.01));
        }
}

TEST_CASE("choose: without cards the predicted time is exact") {
    const simulated::network net{.latency = microseconds(30), .bandwidth = gigabit};
    for (const int ranks : {2, 3, 8}) {
        const auto best = chosen(ranks, net, {.dimension = 10'000});
        CHECK(best.expected == dense_time(best.topology, ranks, 10'000, net));
    }
}

TEST_CASE("choose: few rounds for small vectors, few bytes for large ones, coded streams for sparse ones") {
    const auto small = chosen(8, ethernet, {.dimension = 16});
    CHECK(std::string(small.topology.shape_name()) == "recursive_doubling");

    const auto large = chosen(8, ethernet, {.dimension = 1'000'000});
    const std::string shape = large.topology.shape_name();
    CHECK(shape == "halving_doubling");  // split_allgather would take 0.03 % less, with bursts of seven ranks to one
    CHECK(large.reason().find("The best streams: ") != std::string::npos);

    const cost::gradient_shape gradient{.dimension = 100'000, .density = 0.01};
    const auto sparse = chosen(8, ethernet, gradient);
    CHECK(sparse.compress);
    CHECK(sparse.codings.contribution == coding{.indices = index_coding::elias_fano});
    CHECK(sparse.reason().find("Without compression: ") != std::string::npos);
    const duration seen = stream_time(sparse.topology, 8, gradient, sparse.codings, ethernet);
    CHECK(ratio(sparse.expected, seen) == doctest::Approx(1).epsilon(0.05));
    const auto denser = cost::choose(sparse.costs, {.dimension = 100'000, .density = 0.1});
    CHECK(std::string(denser.topology.shape_name()) == "split_allgather");
    CHECK(denser.compress);

    const simulated::network links{.latency = microseconds(5), .bandwidth = gigabit};
    const auto at_once = chosen(8, links, gradient);
    CHECK(std::string(at_once.topology.shape_name()) == "split_allgather");
    CHECK(at_once.codings.contribution == coding{.indices = index_coding::elias_fano});
    cases::for_each_topology([&](const auto& other) {
        CHECK(ratio(seen, stream_time(other, 8, gradient, sparse.codings, ethernet)) <= 1.02);
    });
}

namespace {

cost::measured_costs measured(int ranks, const simulated::network& net) {
    cost::measured_costs found;
    simulated::run(ranks, net, [&](simulated::endpoint& self) {
        group workers{self, topology::tree{}};
        const auto own = cost::measure_costs(workers, {.link = {.largest_bytes = 80'000}, .dimension = 20'000});
        if (self.rank() == 0) found = own;
    });
    return found;
}

/// Of all shapes, with streams in Elias-Fano coding.
void check_predictions(const cost::measured_costs& costs, const simulated::network& net, double density) {
    const cost::gradient_shape gradient{.dimension = 20'000, .density = density};
    for (const cost::exchange_candidate& each : cost::choose(costs, gradient).candidates) {
        if (!each.compress || each.codings.contribution.indices != index_coding::elias_fano ||
            each.codings.when != dense_switch{})
            continue;
        const std::string shape = each.topology.shape_name();
        CAPTURE(shape);
        const double found = ratio(each.time(), stream_time(each.topology, costs.ranks, gradient, each.codings, net));
        CHECK(found >= 1 / 1.3);
        CHECK(found <= 1.3);
    }
}

}  // namespace

TEST_CASE(
    "choose: streams take what is predicted, over half-duplex lines and with cards that pass one message at a time") {
    const simulated::network half{.latency = microseconds(5), .bandwidth = gigabit, .half_duplex = true};
    const simulated::network incast{.latency = microseconds(5), .bandwidth = gigabit, .cards = [](rank_t) {
                                        return network_card::single_receive(gigabit);
                                    }};
    for (const int ranks : {2, 3, 6, 8})
        for (const auto* net : {&half, &incast, &ethernet}) {
            const cost::measured_costs costs = measured(ranks, *net);
            for (const double density : {0.001, 0.3}) {
                CAPTURE(ranks);
                CAPTURE(density);
                check_predictions(costs, *net, density);
            }
        }
}

TEST_CASE("choose: one rank sends nothing; a gradient without coordinates, or without entries, is one too") {
    const auto alone = chosen(1, {}, {.dimension = 1000, .density = 0.01});
    CHECK(alone.reason() == "Do not compress: a single rank sends nothing.");
    CHECK(alone.expected == duration{});
    CHECK(!chosen(3, ethernet, {.dimension = 0, .density = 0.5}).compress);
    CHECK(chosen(3, ethernet, {.dimension = 100'000, .density = 0}).compress);
}

TEST_CASE("choose: values are rounded only where the caller permits it") {
    const cost::gradient_shape lossless{.dimension = 100'000, .density = 0.01};
    for (const auto& each : chosen(4, ethernet, lossless).candidates) CHECK(each.codings.contribution.is_lossless());
    cost::gradient_shape lossy = lossless;
    lossy.values = value_coding::qsgd4;
    lossy.bucket = 512;
    const auto best = chosen(4, ethernet, lossy);
    CHECK(best.codings.contribution.values == value_coding::qsgd4);
    CHECK(best.codings.contribution.bucket == 512);
    CHECK(best.codings.partial.is_lossless());
    CHECK(best.codings.copy.is_lossless());
    CHECK(best.reason().find("values as qsgd4") != std::string::npos);
    CHECK(best.expected < chosen(4, ethernet, lossless).expected);
}

TEST_CASE("choose: sums that are measured to be smaller are predicted to travel faster") {
    const cost::gradient_shape random{.dimension = 100'000, .density = 0.05};
    cost::gradient_shape measured = random;
    measured.union_growth = 1.2;
    const auto usual = chosen(8, ethernet, random), best = cost::choose(usual.costs, measured);
    CHECK(best.expected.seconds() < 0.8 * usual.expected.seconds());
    measured.union_growth = 8;
    CHECK(cost::choose(usual.costs, measured).expected == usual.expected);
    // Measured with more ranks than there are now: no more than all supports can be apart.
    CHECK(chosen(4, ethernet, measured).expected == chosen(4, ethernet, random).expected);
    CHECK_NOTHROW(chosen(1, ethernet, measured));
    measured.union_growth = 0.5;
    CHECK_THROWS_AS(chosen(4, ethernet, measured), contract_violation);
}

TEST_CASE("choose: codings whose cost it does not know, empty buckets and figures that cannot be are refused") {
    const auto refuses = [](const cost::measured_costs& costs, const cost::gradient_shape& gradient) {
        CHECK_THROWS_AS(cost::choose(costs, gradient), contract_violation);
    };
    const cost::measured_costs costs{.ranks = 4};
    for (const auto unknown : {value_coding::own, static_cast<value_coding>(16)}) {
        refuses(costs, {.dimension = 1000, .density = 0.01, .values = unknown});
        refuses(costs, {.dimension = 1000, .density = 0.01, .copy = unknown});
    }
    refuses(costs, {.dimension = 1000, .density = 0.01, .values = value_coding::qsgd4, .bucket = 0});
    refuses({.ranks = 4, .computing = {.merge = std::nan("")}}, {.dimension = 1000});
    refuses({.ranks = 4, .link = {.link = {.latency = nanoseconds(-1)}}}, {.dimension = 1000});
    CHECK_THROWS_AS((void)cost::exchange_choice{.costs = costs}.reason(), contract_violation);
}

namespace {

/// Rows at random, `gradient.density` of them.
stream<float> random_rows(const cost::gradient_shape& gradient, int rank) {
    stream<float> made(gradient.dimension);
    random_sequence random(random_key{11}.derive(static_cast<unsigned>(rank)));
    for (std::size_t first = 0; first < gradient.dimension; first += gradient.row_length)
        if (random.bits() * 0x1p-32 < gradient.density)
            for (std::size_t i = first; i < std::min<std::size_t>(gradient.dimension, first + gradient.row_length); ++i)
                made.push_back(i, 1.0F);
    return made;
}

}  // namespace

TEST_CASE("choose: of entries in rows one index counts for each row, and sums take what is predicted") {
    for (const int ranks : {2, 3, 8})
        for (const std::uint32_t row_length : {2U, 30U}) {
            CAPTURE(ranks);
            CAPTURE(row_length);
            // The last row is shorter.
            const cost::gradient_shape rows{.dimension = 60'001, .density = 0.1, .row_length = row_length};
            cost::gradient_shape entries = rows;
            entries.row_length = 1;
            const auto best = chosen(ranks, ethernet, rows);
            CHECK(best.codings.contribution ==
                  coding{.indices = index_coding::whole_rows, .row = static_cast<std::uint16_t>(row_length)});
            CHECK(best.reason().find("indices as whole_rows") != std::string::npos);
            CHECK(best.expected < cost::choose(best.costs, entries).expected);
            for (const cost::exchange_candidate& each : best.candidates) {
                if (!each.compress || each.codings.when != dense_switch{}) continue;
                const std::string text = each.topology.shape_name();
                CAPTURE(text);
                CAPTURE(each.codings.contribution.indices);
                const duration seen = support::simulate(ranks, ethernet, each.topology, [&](auto& workers) {
                                          const auto mine = random_rows(rows, workers.rank());
                                          stream<float> sum;
                                          return all_reduce(workers, mine, sum, aggregate::sum{}, each.codings);
                                      }).elapsed;
                CHECK(ratio(each.time(), seen) >= 1 / 1.3);
                CHECK(ratio(each.time(), seen) <= 1.3);
            }
        }
}

TEST_CASE("choose: entries that are alone travel without rows, and a row has a length") {
    for (const auto& each : chosen(3, ethernet, {.dimension = 1000, .density = 0.1}).candidates)
        CHECK(each.codings.contribution.indices != index_coding::whole_rows);
    for (const std::uint32_t none : {0U, 65536U})
        CHECK_THROWS_WITH(cost::choose(cost::measured_costs{}, {.dimension = 9, .density = 0.5, .row_length = none}),
                          doctest::Contains("a row has 1 to 65535 coordinates"));
}

namespace {

/// Of all candidates with streams in raw coding, or with dense vectors.
std::int64_t time_of(const cost::exchange_choice& found, const topology::any& shape, bool compress) {
    return std::find_if(found.candidates.begin(), found.candidates.end(),
                        [&](const cost::exchange_candidate& each) {
                            return each.topology == shape && each.compress == compress &&
                                   each.codings.contribution.indices == index_coding::raw;
                        })
        ->time()
        .ns;
}

}  // namespace

TEST_CASE("choose: more bytes take longer than a measured small sum by what an idle line does not let pass at once") {
    cost::measured_costs costs{.ranks = 8, .link = {.link = {microseconds(5), gigabit}}, .sums = {.few = 2}};
    const cost::detail::small_sum few{8, 2};
    const cost::gradient_shape gradient{.dimension = 64, .density = 0.1};
    const auto predicted = cost::choose(costs, gradient);
    for (std::size_t i = 0; i < cost::measured_topologies.size(); ++i) {
        const auto& shape = cost::measured_topologies[i];
        const auto predict = [&](auto messages) {
            return cost::predict_all_reduce(shape, 8, messages, uniform_links{costs.link.link});
        };
        const cost::prediction empty = predict(cost::dense_messages<float>(0));
        for (const bool compress : {false, true}) {
            const duration of_small = (compress ? predict(cost::stream_messages(few.dimension(), few, few.codings()))
                                                : predict(cost::dense_messages<float>(2)))
                                          .elapsed;
            const std::int64_t line = (of_small - empty.elapsed).ns,
                               more = std::max<std::int64_t>(time_of(predicted, shape, compress) - of_small.ns, 0);
            for (const std::int64_t idle : {0, 40, 1'000'000})
                for (const std::int64_t at_once : {0, 10, 1 << 20}) {  // 10 bytes take 80 ns
                    const std::int64_t small = 1 + line + idle, passed = at_once * 8 * empty.rounds;
                    costs.sums.small_dense[i] = costs.sums.small_streams[i] = static_cast<double>(small);
                    costs.link.at_once = static_cast<std::uint64_t>(at_once);
                    CHECK(time_of(cost::choose(costs, gradient), shape, compress) ==
                          small + more - std::min({more, idle + 1, passed}));
                }
        }
    }
    // Where ranks share cores, few messages are faster than few rounds.
    costs.sums.small_streams[4] = 5e5;
    const auto best = cost::choose(costs, gradient);
    CHECK(std::string(best.topology.shape_name()) == "tree");
    CHECK(best.reason().find("Less time for a small sum decides.") != std::string::npos);
}

TEST_CASE("choose: where an entry more of a sum was measured, it counts in place of messages and folds") {
    cost::measured_costs costs{.ranks = 2, .link = {.link = {microseconds(1), 0}}};
    costs.computing = {.fold = 9, .merge = 9, .copy = 9, .copy_entry = 9};
    costs.computing.encode = {0, 3, 3, 3, 3, 3};
    costs.sums.small_dense.fill(2000);
    costs.sums.small_streams.fill(3000);
    costs.sums.dense = {6, 1, 5, 5, 7, 7};
    costs.sums.streams.fill(4);
    const topology::any doubling = topology::recursive_doubling{}, split = topology::split_allgather{};
    const auto dense = cost::choose(costs, {.dimension = 100'000});
    CHECK(dense.topology == split);
    CHECK(!dense.compress);
    CHECK(time_of(dense, split, false) == 2000 + 100'000);
    CHECK(time_of(dense, doubling, false) == 2000 + 600'000);
    const auto sparse = cost::choose(costs, {.dimension = 100'000, .density = 0.01});
    CHECK(sparse.codings.contribution.indices == index_coding::raw);  // the others are computed
    CHECK(time_of(sparse, doubling, true) == doctest::Approx(3000 + 1990 * 4).epsilon(0.001));
}

TEST_CASE("choose: of candidates within 2 % the one in which the fewest ranks send to one at once is taken") {
    const topology::any split = topology::split_allgather{}, ring = topology::ring{},
                        halving = topology::halving_doubling{}, tree = topology::tree{};
    // Without a bandwidth and computing, a sum takes what a small one was measured to take.
    const auto choice_of = [](double of_split, double of_ring, double of_halving, double of_tree = 1e9) {
        cost::measured_costs costs{.ranks = 8, .link = {.link = {microseconds(1), 0}}, .sums = {.few = 1}};
        costs.sums.small_dense = {1e9, of_split, of_ring, of_halving, of_tree, 1e9};
        costs.sums.small_streams.fill(1e9);
        auto best = cost::choose(costs, {.dimension = 64});
        CHECK(best.candidates[0].topology == best.topology);
        CHECK(best.candidates[0].time() == best.expected);
        CHECK(std::is_sorted(best.candidates.begin() + 1, best.candidates.end(),
                             [](const auto& a, const auto& b) { return a.time() < b.time(); }));
        return best;
    };
    const auto within = choice_of(100'000, 102'000, 1e9);
    CHECK(within.topology == ring);
    CHECK(within.expected == nanoseconds(102'000));
    CHECK(within.candidates[1].topology == split);
    CHECK(within.reason().find("The difference is within 2 %; fewer ranks send to one at once: 1 instead of 7.") !=
          std::string::npos);

    const auto slower = choice_of(100'000, 102'100, 1e9);
    CHECK(slower.topology == split);
    CHECK(slower.reason().find("at once") == std::string::npos);

    CHECK(choice_of(100'000, 102'000, 101'000).topology == halving);  // of as few senders the fastest
    CHECK(choice_of(100'000, 101'000, 101'000).topology == ring);     // of equally fast ones the simpler
    CHECK(choice_of(100'000, 100'000, 1e9).topology == ring);
    CHECK(choice_of(100'000, 1e9, 1e9, 101'000).topology == tree);  // fewer, not only one
    CHECK(choice_of(102'000, 100'000, 1e9).topology == ring);
}

TEST_CASE("choose: from measured figures, without a network; each figure counts") {
    const cost::measured_costs costs{
        .ranks = 8,
        .link = {
            .link = {microseconds(5), gigabit}, .both_ways = gigabit, .all_to_one = gigabit, .one_to_all = gigabit}};
    const cost::gradient_shape gradient{.dimension = 300'000, .density = 0.01, .selects = true};
    const auto best = cost::choose(costs, gradient);
    CHECK(best.compress);
    CHECK(cost::choose({.ranks = 3}, {.dimension = 9}).costs.ranks == 3);

    cost::measured_costs slow = costs;
    slow.computing.select = 1e4;
    CHECK(!cost::choose(slow, gradient).compress);
    CHECK(cost::choose(slow, gradient).reason().starts_with("Do not compress: "));
    slow = costs;
    slow.computing.encode.fill(1e4);
    slow.computing.encode[0] = 0;
    CHECK(cost::choose(slow, gradient).codings.contribution.indices == index_coding::raw);
    slow = costs;
    slow.link.round_trip_from = 4096;
    CHECK(cost::choose(slow, gradient).expected > best.expected);

    const cost::gradient_shape pair{.dimension = 100'000};
    cost::measured_costs half = costs;
    half.ranks = 2;
    const duration full_duplex = cost::choose(half, pair).expected;
    half.link.both_ways = gigabit / 2;
    CHECK(cost::choose(half, pair).expected > full_duplex);
}

TEST_CASE("choose: ranks that ask for different things are named, with what differs, on all ranks") {
    const auto errors = [](const cost::gradient_shape& usual, const cost::gradient_shape& odd, rank_t rank) {
        std::vector<std::string> all(4);
        simulated::run(4, ethernet, [&](simulated::endpoint& self) {
            try {
                (void)cost::choose(self, self.rank() == rank ? odd : usual);
            } catch (const mismatch& e) {
                all[static_cast<std::size_t>(self.rank())] = e.what();
                CHECK(e.culprit() != 0);
            }
        });
        CHECK(all == std::vector<std::string>(4, all[0]));
        return all[0];
    };
    CHECK(errors({.dimension = 13}, {.dimension = 12}, 3) ==
          "rill: choose: rank 3 asked for dimension 12, rank 0 for 13");
    CHECK(errors({.dimension = 13, .density = 0.01}, {.dimension = 13, .density = 0.1}, 2) ==
          "rill: choose: rank 2 asked for density 0.1, rank 0 for 0.01");
    CHECK(errors({.dimension = 9}, {.dimension = 9, .values = value_coding::qsgd4}, 1) ==
          "rill: choose: rank 1 asked for values qsgd4, rank 0 for raw");
    CHECK(errors({.dimension = 9}, {.dimension = 8}, 0) == "rill: choose: rank 1 asked for dimension 9, rank 0 for 8");
    CHECK_THROWS_WITH(cost::choose(cost::measured_costs{}, {.dimension = 9, .density = 1.5}),
                      doctest::Contains("a density is between 0 and 1"));
}

TEST_CASE("choose: with real clocks all ranks choose the same, and add up with it") {
    std::vector<std::string> reasons(3);
    in_process::run(3, [&](in_process::endpoint& self) {
        const auto best = cost::choose(self, {.dimension = 5000, .density = 0.02});
        reasons[static_cast<std::size_t>(self.rank())] = best.reason();
        group workers{self, best.topology};
        stream<float> mine(5000), sum;
        for (std::size_t i = 0; i < 5000; i += 50) mine.push_back(i, 1.0F);
        all_reduce(workers, mine, sum, aggregate::sum{}, best.codings);
        CHECK(std::accumulate(sum.values().begin(), sum.values().end(), 0.0F) == 300.0F);  // in either form
    });
    CHECK(reasons == std::vector<std::string>(3, reasons[0]));
}
