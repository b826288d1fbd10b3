#include <rill/concept/update.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/adam.hpp>
#include <rill/train/decoupled_decay.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace descents {

using rill::train::constant_rate;
using rill::train::descent;
using rill::train::sgd;

/// A model after five steps along a gradient with some entries, dense or as a stream.
template <class Rule>
std::vector<double> moved_by(const Rule& rule, bool by_stream) {
    std::vector<double> model{1, 2, 3, 4, 5}, dense{0, 0.5, 0, -2, 0};
    rill::stream<double> stream(5);
    stream.push_back(1, 0.5);
    stream.push_back(3, -2.0);
    auto bound = rule.template bind<double>(5);
    for (std::uint64_t round = 0; round < 5; ++round)
        if (by_stream)
            bound.apply(std::span(model), stream.view(), 1.0, round);
        else
            bound.apply(std::span(model), std::span<const double>(dense), 1.0, round);
    return model;
}

template <class Bound>
concept TakesStreams = requires(Bound& bound, std::span<double> model, const rill::stream_view<double>& fold) {
    bound.apply(model, fold, 1.0, 0);
};

}  // namespace descents

using namespace descents;

TEST_CASE("descent: a step at the rate of the round times the weight, or without it") {
    std::vector<double> model{8};
    const std::vector<double> fold{1};
    auto scaled = descent{sgd{}, constant_rate{0.5}}.bind<double>(1);
    scaled.apply(std::span(model), std::span(fold), 4.0, 0);
    CHECK(model[0] == 6);
    auto plain = descent{sgd{}, constant_rate{0.5}, false}.bind<double>(1);
    plain.apply(std::span(model), std::span(fold), 4.0, 0);
    CHECK(model[0] == 5.5);
}

TEST_CASE("descent: refuses a rate that is not finite, and leaves the model as it is") {
    std::vector<double> model{8};
    auto bound = descent{sgd{}, rill::train::inverse_time{.c1 = 2, .c2 = 0}}.bind<double>(1);
    CHECK_THROWS_WITH_AS(bound.apply(std::span(model), std::span<const double>(model), 1, 0),
                         "rill: train: the rate of step 0 is inf; it must be finite", rill::contract_violation);
    CHECK(model[0] == 8);
}

TEST_CASE("descent: a stream moves the model as the dense fold does, where the optimizer takes streams") {
    for (const sgd& optimizer : {sgd{}, sgd{.momentum = 0.5}, sgd{.weight_decay = 0.25}}) {
        const descent rule{optimizer, constant_rate{0.5}};
        CHECK(moved_by(rule, true) == moved_by(rule, false));
    }
    static_assert(TakesStreams<decltype(descent<>{}.bind<double>(1))>);
}

TEST_CASE("descent: ranks tell its options apart by its fingerprint") {
    const rill::train::descent usual{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.1}};
    CHECK(rill::fingerprint(usual) ==
          rill::fingerprint(rill::train::descent{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.1}}));
    CHECK(rill::fingerprint(usual) !=
          rill::fingerprint(rill::train::descent{rill::train::sgd{}, rill::train::constant_rate{0.1}}));
    CHECK(rill::fingerprint(usual) !=
          rill::fingerprint(rill::train::descent{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.2}}));
    CHECK(rill::fingerprint(usual) != rill::fingerprint(rill::train::descent{rill::train::sgd{.momentum = 0.5},
                                                                             rill::train::constant_rate{0.1}, false}));
    CHECK(rill::fingerprint(usual) !=
          rill::fingerprint(rill::train::descent{rill::train::adam{}, rill::train::constant_rate{0.1}}));
    const rill::train::decoupled_decay decayed{rill::train::sgd{.momentum = 0.5}, 0.01};
    CHECK(rill::fingerprint(usual) !=
          rill::fingerprint(rill::train::descent{decayed, rill::train::constant_rate{0.1}}));
    CHECK(rill::fingerprint(rill::train::step_decay{.every = 2}) !=
          rill::fingerprint(rill::train::step_decay{.every = 3}));
    CHECK(rill::fingerprint(rill::train::inverse_time{.c2 = 2}) !=
          rill::fingerprint(rill::train::inverse_time{.c2 = 3}));
    CHECK(rill::fingerprint(rill::train::warmup_cosine{.total = 2}) !=
          rill::fingerprint(rill::train::warmup_cosine{.total = 3}));
}
