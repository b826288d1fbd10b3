#include <rill/train/coded_bsp.hpp>

#include "infinite_rate.hpp"

#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/topology/star.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <span>
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

TEST_CASE("coded_bsp: all ranks refuse an infinite rate before they compute") {
    jobs::check_infinite_rate(
        train::coded_bsp{topology::star{}, gradient_code::cyclic_mds{}.bind(2, 1), train::sgd{}, jobs::infinite});
}
