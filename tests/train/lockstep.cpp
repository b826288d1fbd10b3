#include <rill/train/lockstep.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/train/adam.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/decoupled_decay.hpp>
#include <rill/train/partial_bsp.hpp>
#include <rill/train/sign_bsp.hpp>
#include <rill/train/sparse_bsp.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

using namespace rill;

namespace {

constexpr topology::split_allgather shape{};
constexpr train::sgd sgd{.momentum = 0.5};
constexpr train::inverse_time rate{};

template <train::Clipping Clip, class Visit>
void for_each_clipped(const Clip& clip, Visit visit) {
    visit(train::bsp{shape, sgd, rate, clip});
    visit(train::compressed_bsp{shape, compress::error_feedback{compress::top_k{.count = 1}}, sgd, rate, clip});
    visit(train::overlapped_bsp{shape, sgd, rate, clip});
    visit(
        train::overlapped_bsp{shape, sgd, rate, clip, fusion{}, compress::error_feedback{compress::top_k{.count = 1}}});
}

template <class Visit>
void for_each_strategy(Visit visit) {
    for_each_clipped(train::clip_value{.most = 4}, visit);
    visit(train::sign_bsp{shape, sgd, rate});
    visit(train::sparse_bsp{shape, stream_codings{}, sgd, rate});
}

/// What binding throws on each of three ranks of which rank 1 has the strategy `odd`.
template <class Plan, class Odd>
void check_refused(const Plan& plan, const Odd& odd, std::string_view what) {
    CAPTURE(Plan::name);
    jobs::on_transports(3, [&](auto& net) {
        const auto bind = [&](const auto& one) { (void)one.bind(net, jobs::three); };
        const std::string message = message_of<mismatch>([&] { net.rank() == 1 ? bind(odd) : bind(plan); });
        CHECK_MESSAGE(message.find("rank 1 calls with another " + std::string(what)) != std::string::npos, message);
    });
}

}  // namespace

/// Policies that no rank can compare: a user's without a name.
namespace nameless {

struct own_rate {
    double value = 0.1;

    double rate(std::uint64_t) const { return value; }
    friend bool operator==(const own_rate&, const own_rate&) = default;
};
struct own_optimizer {
    static constexpr bool is_linear = true;

    double momentum = 0;

    template <std::floating_point T = float>
    auto bind(std::size_t dimension) const {
        return train::sgd{.momentum = momentum}.bind<T>(dimension);
    }
    friend bool operator==(const own_optimizer&, const own_optimizer&) = default;
};
struct own_clip {
    static constexpr bool is_coordinatewise = true;

    float most = 1;

    void apply(std::span<float> gradient) const { train::clip_value{most}.apply(gradient); }
    friend bool operator==(const own_clip&, const own_clip&) = default;
};

}  // namespace nameless

TEST_CASE("lockstep: a rank with another rate is refused on all ranks, by name") {
    for_each_strategy([](const auto& plan) {
        auto odd = plan;
        odd.rate.c1 = 2;
        check_refused(plan, odd, "rate");
    });
}

TEST_CASE("lockstep: a rank with another optimizer is refused on all ranks, by name") {
    for_each_strategy([](const auto& plan) {
        auto odd = plan;
        odd.optimizer.momentum = 0.25;
        check_refused(plan, odd, "optimizer");
    });
    check_refused(train::bsp{shape, train::decoupled_decay{sgd, 0.1}, rate},
                  train::bsp{shape, train::decoupled_decay{sgd, 0.2}, rate}, "optimizer");
    check_refused(train::bsp{shape, sgd, rate}, train::bsp{shape, train::adam{}, rate}, "optimizer");
}

TEST_CASE("lockstep: a rank with another clipping is refused on all ranks, by name") {
    for_each_clipped(train::clip_value{.most = 4}, [](const auto& plan) {
        auto odd = plan;
        odd.clip.most = 5;
        check_refused(plan, odd, "clipping");
    });
    for_each_clipped(train::per_bucket{train::clip_norm{.most = 4}}, [](const auto& plan) {
        auto odd = plan;
        odd.clip.clip.most = 5;
        check_refused(plan, odd, "clipping");
    });
    check_refused(train::bsp{shape, sgd, rate, train::clip_norm{.most = 4}},
                  train::bsp{shape, sgd, rate, train::clip_norm{.most = 5}}, "clipping");
    check_refused(train::bsp{shape, sgd, rate}, train::bsp{shape, sgd, rate, train::clip_value{.most = 5}}, "clipping");
}

TEST_CASE("lockstep: a clipping that cannot be is refused when it is bound") {
    const auto check = [](const auto& plan) {
        CAPTURE(std::remove_cvref_t<decltype(plan)>::name);
        jobs::on_transports(2, [&](auto& net) {
            CHECK(message_of<contract_violation>([&] { (void)plan.bind(net, jobs::three); }) ==
                  "rill: train::clip_value: most is -1; it must be at least 0");
        });
    };
    for_each_clipped(train::clip_value{.most = -1}, check);
    check(train::partial_bsp{topology::star{}, straggler::wait_all{}, sgd, rate, straggler::fresh{},
                             train::clip_value{.most = -1}});
    check(train::decentralized{topology::ring_neighbours{}, sgd, rate, compress::keep_all{}, train::mix_after{},
                               train::every{}, train::clip_value{.most = -1}});
}

TEST_CASE("lockstep: a rank with another strategy is refused on all ranks, by name") {
    for_each_strategy([](const auto& plan) {
        if constexpr (!std::same_as<std::remove_cvref_t<decltype(plan)>,
                                    std::remove_cv_t<decltype(train::sign_bsp{shape, sgd, rate})>>)
            check_refused(plan, train::sign_bsp{shape, sgd, rate}, "strategy");
    });
}

TEST_CASE("lockstep: the comparison counts as no operation, from which random numbers are derived") {
    jobs::on_transports(3, [](auto& net) {
        CHECK(train::bsp{shape, sgd, rate}.bind(net, jobs::three).position() == 0);
        CHECK(train::sign_bsp{shape, sgd, rate}.bind(net, jobs::three).position() == 0);
    });
}

TEST_CASE("lockstep: policies without a name are not compared") {
    jobs::on_transports(3, [](auto& net) {
        const double own = net.rank() == 1 ? 0.5 : 0.25;
        const train::bsp plan{shape, nameless::own_optimizer{.momentum = own}, nameless::own_rate{own},
                              nameless::own_clip{static_cast<float>(own)}};
        CHECK_NOTHROW(plan.bind(net, jobs::three));
    });
}
