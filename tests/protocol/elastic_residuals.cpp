// Residuals of error feedback in an elastic team: handed over by ranks that leave, declared as lost of ranks that die.
#include <rill/protocol/elastic.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
