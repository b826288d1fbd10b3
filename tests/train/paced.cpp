#include <rill/train/paced.hpp>

#include "samples.hpp"

#include <rill/core/contract.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill;

TEST_CASE("paced: takes the given time, layer by layer, and computes what its model does") {
    const train::dataset data = random_dataset(8, 4, 2);
    const std::vector<std::uint32_t> rows = first_rows(8);
    trace_log log;
    simulated::run(1, {}, [&](auto& inner) {
        traced net{inner, log};
        const train::pace computing{.forward = nanoseconds(100), .backward = nanoseconds(1000)};
        train::paced model{net, train::perceptron<float>({4, 3, 2}), computing};  // 12 + 3 + 6 + 2 parameters
        std::vector<float> w(model.dimension()), g(w.size()), expected(w.size());
        model.initialise(w, random_key{1});
        const double loss = model.model().gradient(w, {data, rows}, expected);
        CHECK(net.now().ns == 0);

        std::vector<std::int64_t> ready;
        CHECK(model.gradient(w, {data, rows}, g, [&](std::size_t) { ready.push_back(net.now().ns); }) == loss);
        CHECK(g == expected);
        CHECK(ready == std::vector<std::int64_t>{186, 446, 576, 1097});  // shares are rounded down
        const time_point before = net.now();
        CHECK(model.loss(w, {data, rows}) == loss);
        CHECK((net.now() - before).ns == 100);
    });
    CHECK(std::string(log.events()[1].name) == "forward");
    CHECK(std::string(log.events()[3].name) == "backward");
}

TEST_CASE("paced: refuses a time below 0, by name") {
    simulated::run(1, {}, [](auto& net) {
        const auto made = [&](const train::pace& chosen) {
            return train::paced{net, train::perceptron<float>({4, 3, 2}), chosen};
        };
        CHECK_THROWS_WITH_AS(made({.forward = nanoseconds(-1)}),
                             "rill: train::pace: forward is -1; it must be at least 0 ns", contract_violation);
        CHECK_THROWS_WITH_AS(made({.backward = nanoseconds(-2)}),
                             "rill: train::pace: backward is -2; it must be at least 0 ns", contract_violation);
    });
}
