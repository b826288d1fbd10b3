#include <rill/train/coded_bsp.hpp>

#include "infinite_rate.hpp"

#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/star.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace rill;

TEST_CASE("coded_bsp: the root skips a step whose sum is not finite, and goes on") {
    const train::coded_bsp plan{topology::star{}, gradient_code::cyclic_mds{}.bind(3, 1), train::sgd{},
                                train::constant_rate{1}};
    std::vector<float> reached;
    std::vector<bool> skipped;
    simulated::run(4, {}, [&](auto& net) {
        const std::vector<layer> two{{"w", {0, 2}}};
        auto bound = plan.bind(net, two);
        std::vector<float> parameters(2), gradient(2);
        const auto own = plan.code.coefficients_of(net.rank() == 0 ? 0 : net.rank() - 1);
        double sum = 0;  // each partition's gradient is 1
        for (const double each : own) sum += each;
        const auto compute = [&] {
            gradient = {static_cast<float>(sum), static_cast<float>(2 * sum)};
            if (bound.position() == 2) gradient[1] = std::numeric_limits<float>::infinity();  // in step 1
            return 1.0;
        };
        while (const auto record = bound.step(std::span(parameters), std::span(gradient), 0, compute)) {
            CHECK(record.loss == (bound.is_root() ? 0 : 1));
            CHECK(record.skipped() == (record.step == 1));
            if (!bound.is_root()) continue;
            skipped.push_back(record.skipped());
            reached = parameters;
            if (record.step == 2) bound.end();
        }
    });
    CHECK(skipped == std::vector<bool>{false, true, false});
    REQUIRE(reached.size() == 2);
    CHECK(reached[0] == doctest::Approx(-6));
    CHECK(reached[1] == doctest::Approx(-12));
}

TEST_CASE("coded_bsp: a gradient that is not finite skips the step whatever the coding, and only its rank is named") {
    for (const value_coding values : {value_coding::raw, value_coding::bf16, value_coding::qsgd8}) {
        CAPTURE(name_of(values));
        const train::coded_bsp plan{topology::regular_tree{3, 2}, gradient_code::repetition_groups{}.bind(3, 0),
                                    train::sgd{}, train::constant_rate{1}, coded_options{.values = {.values = values}}};
        std::vector<std::string> told(13);
        simulated::run(13, {}, [&](auto& net) {
            const std::vector<layer> all{{"w", {0, 4}}};
            auto bound = plan.bind(net, all);
            std::vector<float> parameters(4), gradient(4);
            for (std::uint64_t step = 0; step < 3; ++step) {
                const bool is_bad = net.rank() == 7 && step == 1;
                const auto record = bound.step(std::span(parameters), std::span(gradient), step, [&] {
                    gradient.assign(4, is_bad ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
                    return 1.0;
                });
                if (record.skipped()) told[static_cast<std::size_t>(net.rank())] += describe_skip(record);
            }
            bound.end();
            if (bound.is_root()) CHECK(parameters[0] == doctest::Approx(-2 * 12).epsilon(0.01));
        });
        std::vector<std::string> expected(13);
        expected[0] = "step 1 skipped: the sum of the gradients is not finite at coordinate 0";
        expected[7] = "step 1 skipped: the gradient of rank 7 is not finite at coordinate 0";
        CHECK(told == expected);
    }
}

TEST_CASE("coded_bsp: a new run goes on with the random numbers of QSGD") {
    const train::coded_bsp plan{topology::star{}, gradient_code::repetition_groups{}.bind(2, 0), train::sgd{},
                                train::constant_rate{0.1}, coded_options{.values = {.values = value_coding::qsgd8}}};
    const auto run = [&](std::uint64_t first, std::uint64_t last, std::vector<float> parameters) {
        std::vector<float> reached;
        simulated::run(3, {}, [&](auto& net) {
            const std::vector<layer> all{{"w", {0, 8}}};
            auto bound = plan.bind(net, all);
            std::vector<float> own = parameters, gradient(8);
            bound.resume_at(first);
            for (std::uint64_t step = first; step < last; ++step)
                bound.step(std::span(own), std::span(gradient), step, [&] {
                    for (std::size_t i = 0; i < 8; ++i) gradient[i] = own[i] - static_cast<float>(i) / 7;
                    return 1.0;
                });
            bound.end();
            if (bound.is_root()) reached = own;
        });
        return reached;
    };
    const std::vector<float> half = run(0, 3, std::vector<float>(8));
    CHECK(run(3, 6, half) == run(0, 6, std::vector<float>(8)));
    CHECK(run(0, 3, half) != run(3, 6, half));  // other random numbers
}

TEST_CASE("coded_bsp: all ranks refuse an infinite rate before they compute") {
    jobs::check_infinite_rate(
        train::coded_bsp{topology::star{}, gradient_code::cyclic_mds{}.bind(2, 1), train::sgd{}, jobs::infinite});
}
