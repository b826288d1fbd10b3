// The systems in which each rank has a model of its own: their compositions, with the chosen options.
#include <rill/system/choco_sgd.hpp>
#include <rill/system/d_psgd.hpp>
#include <rill/system/d_squared.hpp>
#include <rill/system/dcd_psgd.hpp>
#include <rill/system/gossip_grad.hpp>
#include <rill/system/saps_psgd.hpp>
#include <rill/system/sgp.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <concepts>

namespace decentralized_systems {

using namespace rill;

constexpr train::sgd move{.momentum = 0.5};
constexpr train::constant_rate rate{0.1};

TEST_CASE("d_psgd and d_squared: whole models, mixed with those of neighbours") {
    const auto usual = systems::d_psgd(move, rate);
    CHECK(usual ==
          train::decentralized{topology::ring_neighbours{}, move, rate, compress::keep_all{}, train::mix_before{}});
    const topology::metropolis path{.edges = {{0, 1}, {1, 2}}};
    CHECK(systems::d_psgd(move, rate, path).mixing == path);
    const auto corrected = systems::d_squared(move, rate);
    CHECK(corrected == train::decentralized{topology::ring_neighbours{.own = 0.5}, move, rate, compress::keep_all{},
                                            train::d_squared{}});
}

TEST_CASE("saps_psgd: a mask, and any mixing") {
    const auto masked = systems::saps_psgd({.density = 0.1, .seed = 3}, topology::random_matching{}, move, rate);
    CHECK(masked == train::decentralized{topology::random_matching{}, move, rate,
                                         compress::random_mask{.density = 0.1, .seed = 3}});
    const topology::bandwidth_matching fast{.links = {0, 1, 1, 0}, .least = 1};
    CHECK(systems::saps_psgd({}, fast, move, rate).mixing == fast);
}

TEST_CASE("gossip_grad and sgp: one other rank in each step") {
    static_assert(std::same_as<decltype(systems::gossip_grad(move, rate)),
                               train::decentralized<topology::rotating, train::sgd, train::constant_rate>>);
    CHECK(systems::sgp(move, rate) == train::decentralized{topology::exponential{}, move, rate});
    const topology::directed one_way{.edges = {{0, 1}, {1, 0}}};
    CHECK(systems::sgp(move, rate, one_way).mixing == one_way);
}

TEST_CASE("choco_sgd and dcd_psgd: differences") {
    CHECK(systems::choco_sgd({.density = 0.1, .step = 0.3}, move, rate).codec ==
          compress::difference{compress::top_k{.density = 0.1}, 0.3});
    CHECK(systems::dcd_psgd({.density = 0.5}, move, rate).codec ==
          compress::difference{compress::top_k{.density = 0.5}});
}

}  // namespace decentralized_systems
