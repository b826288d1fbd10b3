// Rounds with codecs that choose the same entries on all ranks, as S-FedAvg does.
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace alike_rounds {

using rill::compress::random_mask;
using rill::simulated::endpoint;
using rill::topology::star;
using rill::topology::tree;

namespace {

constexpr std::size_t dimension = 67;

double value_of(rill::rank_t rank, std::uint64_t round, std::size_t i) {
    return static_cast<double>(rill::mix64(static_cast<std::uint64_t>(rank), round, i) % 1000);
}

/// 1 where the mask of a round chooses the entry.
std::vector<double> marks_of(const random_mask& mask, std::uint64_t round) {
    auto codec = mask.bind<double>(dimension);
    codec.begin(round);
    std::vector<double> marks(dimension);
    codec.decode(std::vector<double>(codec.coded_dimension(), 1), marks);
    return marks;
}

/// Each rank contributes in all of 6 rounds, rank 2 with weight 0 in the second.
template <class Codec>
void check_rounds(const Codec& policy, const random_mask& mask, int arity) {
    std::size_t rounds = 0;
    rill::simulated::run(6, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, tree{arity}};
        auto codec = policy.template bind<double>(dimension);
        std::vector<double> model(1), own(dimension), update(dimension, -1);
        while (steps.next(model)) {
            const std::uint64_t round = steps.number();
            for (std::size_t i = 0; i < dimension; ++i) own[i] = value_of(net.rank(), round, i);
            const bool is_out = net.rank() == 2 && round == 2;
            const auto done = steps.reduce(own, update, codec, rill::aggregate::sum{}, {.weight = is_out ? 0.0 : 1.0});
            if (!steps.is_root()) {
                CHECK(update == std::vector<double>(dimension, -1));
                continue;
            }
            CHECK(done.contributors == (round == 2 ? 5 : 6));
            std::vector<double> expected = marks_of(mask, round);
            for (std::size_t i = 0; i < dimension; ++i) {
                double sum = 0;
                for (rill::rank_t rank = 0; rank < 6; ++rank)
                    if (rank != 2 || round != 2) sum += value_of(rank, round, i);
                expected[i] *= sum;
            }
            CHECK(update == expected);
            if (++rounds == 6) steps.end();
        }
    });
    CHECK(rounds == 6);
}

}  // namespace

TEST_CASE("rounds: a shared mask sends the values that it chooses, and the root puts them in their places") {
    const random_mask mask{.density = 0.3, .seed = 9};
    for (const int arity : {1, 2, 5}) check_rounds(mask, mask, arity);
}

TEST_CASE("rounds: a shared mask that chooses nothing, and one that chooses all") {
    check_rounds(random_mask{.density = 1e-9}, random_mask{.density = 1e-9}, 2);
    check_rounds(random_mask{.density = 1}, random_mask{.density = 1}, 2);
}

TEST_CASE("rounds: bytes of a shared mask are those of its values, and a mean divides what has come") {
    const random_mask mask{.density = 0.1, .seed = 4};
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}, rill::straggler::tolerate{1}};
        auto codec = mask.bind(10'000);
        const std::vector<float> own(10'000, static_cast<float>(net.rank()));
        std::vector<float> model(10'000), update(10'000);
        std::vector<std::uint64_t> overhead;
        while (steps.next(model)) {
            if (net.rank() == 3) net.sleep_until(net.now() + rill::seconds(1));
            const auto done = steps.reduce(own, update, codec, rill::aggregate::mean{});
            codec.begin(steps.number());
            const std::uint64_t values = 4 * codec.coded_dimension();
            if (net.rank() == 1 || net.rank() == 2) overhead.push_back(done.wire.bytes_sent - values);
            if (!steps.is_root()) continue;
            std::vector<float> expected(10'000);
            codec.decode(std::vector<float>(codec.coded_dimension(), 1), expected);
            CHECK(update == expected);  // of ranks 0, 1 and 2
            if (steps.number() == 5) steps.end();
        }
        for (const std::uint64_t each : overhead) CHECK(each / 8 == 29);  // headers, and to the next multiple of 8
    });
}

TEST_CASE("rounds: a shared mask is rounded within the bound of the receipt") {
    rill::simulated::run(3, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        const random_mask mask{.density = 0.5};
        auto codec = rill::compress::encoded{mask, rill::compress::bf16{}}.bind(dimension);
        const std::vector<float> own(dimension, 1.001F);
        std::vector<float> model(1), update(dimension);
        while (steps.next(model)) {
            const auto done = steps.reduce(own, update, codec);
            if (!steps.is_root()) continue;
            const std::vector<double> marks = marks_of(mask, 1);
            for (std::size_t i = 0; i < dimension; ++i)
                CHECK(update[i] == doctest::Approx(3.003 * marks[i]).epsilon(0.01));
            CHECK(done.error_bound > 0);
            steps.end();
        }
    });
}

TEST_CASE("rounds: a mask of another seed on one rank is a mismatch that names it") {
    std::vector<std::string> said(4);
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}};
        auto codec = random_mask{.density = 0.9999, .seed = net.rank() == 2 ? 1U : 2U}.bind<double>(2);
        std::vector<double> model(1), own(2, 1), update(2);
        try {
            while (steps.next(model)) steps.reduce(own, update, codec);
        } catch (const rill::mismatch& e) {
            said[static_cast<std::size_t>(net.rank())] = e.what();
            CHECK(e.culprit() == 2);
        }
    });
    for (const std::string& each : said)
        CHECK(each == "rill: round 1: rank 2 contributes with another coding than rank 0");
}

}  // namespace alike_rounds
