// Invalid options are refused when they are bound, on the rank that has them, before anything is sent.
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/until.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace rill::straggler;
namespace compress = rill::compress;

/// The error that rank 2 of five gets from `body(net)`.
template <class Body>
std::string refused(Body body) {
    std::string told;
    rill::simulated::run(5, {}, [&](auto& net) {
        const std::string mine = message_of<rill::contract_violation>([&] { body(net); });
        if (net.rank() == 2) told = mine;
    });
    return told;
}

template <class Tree, class Enough>
std::string refused_rounds(const Tree& tree, const Enough& enough) {
    return refused([&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        rill::rounds steps(workers, tree, enough);
        if (steps.is_root()) steps.end();
    });
}

std::string refused_codec(const auto& policy) {
    return message_of<rill::contract_violation>([&] { policy.bind(100); });
}

}  // namespace

TEST_CASE("options: completions of rounds") {
    const rill::topology::star star;
    CHECK(refused_rounds(star, fastest{0}) ==
          "rill: straggler::fastest: count is 0; it must be between 1 and 4, the most children of any rank, on rank 2");
    CHECK(has(refused_rounds(star, fastest{-1}), "count is -1;"));
    CHECK(has(refused_rounds(star, fastest{99}), "count is 99;"));
    CHECK(has(refused_rounds(rill::topology::tree{2}, fastest{3}), "between 1 and 2"));
    CHECK(refused_rounds(star, fastest{4}).empty());
    CHECK(has(refused_rounds(star, tolerate{-1}),
              "straggler::tolerate: stragglers is -1; it must be at least 0, on rank 2"));
    CHECK(refused_rounds(star, tolerate{0}).empty());
    CHECK(has(refused_rounds(star, until{.after = rill::seconds(-1)}), "until: after (ns) is -1000000000;"));
    CHECK(has(refused_rounds(star, until{.at_least = -1}), "until: at_least is -1; it must be between 0 and 4"));
    CHECK(has(refused_rounds(star, until{.at_least = 5}), "at_least is 5;"));
    CHECK(refused_rounds(star, until{.after = rill::seconds(1), .at_least = 4}).empty());
}

TEST_CASE("options: a group's timeout, and the arity of a tree") {
    for (const rill::duration timeout : {rill::seconds(0), rill::seconds(-1)})
        CHECK(has(refused([&](auto& net) { rill::group(net, rill::topology::ring{}, {.timeout = timeout}); }),
                  "group_options: timeout (ns) is " + std::to_string(timeout.ns) + "; it must be above 0, on rank 2"));
    for (const int arity : {0, -1})
        CHECK(has(refused([&](auto& net) {
                      rill::group workers{net, rill::topology::tree{.arity = arity}};
                      std::vector<float> x(3);
                      rill::all_reduce(workers, x, x);
                  }),
                  "topology::tree: arity is " + std::to_string(arity) + "; it must be at least 1, on rank 2"));
}

TEST_CASE("options: weights of contributions") {
    const auto weighted = [](double weight) {
        return refused([=](auto& net) {
            rill::group workers{net, rill::topology::ring{}};
            std::vector<float> x(3, 1.F);
            rill::all_reduce(workers, x, x, rill::aggregate::mean{}, {.weight = weight});
            if (weight != 0) CHECK(x[2] * weight == doctest::Approx(1));
        });
    };
    for (const double weight : {-1.0, 1.1e28, 1e300, std::numeric_limits<double>::infinity(), std::nan("")})
        CHECK(has(weighted(weight), "a contribution's weight is a number from 0 to 1e28"));
    for (const double weight : {0.0, 0.5, 1e28}) CHECK(weighted(weight).empty());
}

TEST_CASE("options: codecs") {
    for (const double density : {0.0, -0.5, 1.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
        CHECK(has(refused_codec(compress::top_k{.density = density}), "compress::top_k: density is "));
        CHECK(has(refused_codec(compress::random_mask{.density = density}), "compress::random_mask: density is "));
    }
    CHECK(refused_codec(compress::top_k{.density = 1.0}).empty());
    CHECK(has(refused_codec(compress::bucket_top_k{.bucket = 0}), "compress::bucket_top_k: bucket is 0;"));
    CHECK(has(refused_codec(compress::bucket_top_k{.count = 0}), "compress::bucket_top_k: count is 0;"));
    for (const float limit : {-1.0F, std::nanf(""), std::numeric_limits<float>::infinity()})
        CHECK(has(refused_codec(compress::threshold{.limit = limit}), "compress::threshold: limit is "));
    const compress::top_k some{.density = 0.5};
    CHECK(has(refused_codec(compress::encoded{some, compress::qsgd{.bits = 3}}),
              "compress::qsgd: bits is 3; it must be 2, 4 or 8"));
    CHECK(has(refused_codec(compress::encoded{some, compress::qsgd{.bucket = 0}}), "compress::qsgd: bucket is 0;"));
}
