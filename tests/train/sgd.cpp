#include "../support/scratch.hpp"

#include <rill/stream/stream.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

using namespace rill;
using namespace rill::train;

static_assert(Persistent<bound_sgd<float>>);
static_assert(sgd{.momentum = 0.9} == sgd{.momentum = 0.9});

namespace {
const std::vector<double> slope{0.5, -1.0, 2.0};
}

TEST_CASE("sgd: plain steps go down the gradient") {
    std::vector<double> w{1, 2, 3};
    auto step = sgd{}.bind<double>(3);
    step.step(w, slope, 0.1);
    CHECK(w[0] == doctest::Approx(0.95));
    CHECK(w[1] == doctest::Approx(2.1));
    CHECK(w[2] == doctest::Approx(2.8));
    CHECK(step.velocity().empty());
}

TEST_CASE("sgd: momentum, weight decay and Nesterov follow their formulas") {
    for (bool nesterov : {false, true}) {
        std::vector<double> w{1, 2, 3}, expected = w, v(3);
        auto optimizer = sgd{.momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov}.bind<double>(3);
        for (int k = 0; k < 5; ++k) {
            optimizer.step(w, slope, 0.1);
            for (std::size_t i = 0; i < 3; ++i) {
                const double g = slope[i] + 0.01 * expected[i];
                v[i] = 0.9 * v[i] + g;
                expected[i] -= 0.1 * (nesterov ? g + 0.9 * v[i] : v[i]);
            }
        }
        for (std::size_t i = 0; i < 3; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    }
}

TEST_CASE("sgd: weight decay needs no momentum") {
    std::vector<double> w{2}, g{0};
    auto optimizer = sgd{.weight_decay = 0.5}.bind<double>(1);
    optimizer.step(w, g, 0.1);
    CHECK(w[0] == doctest::Approx(1.9));
}

TEST_CASE("sgd: continues from a checkpoint bit for bit") {
    const scratch_directory here;
    const sgd policy{.momentum = 0.9, .nesterov = true};
    std::vector<float> w{1, 2, 3}, g{0.3F, -0.7F, 0.1F};
    auto original = policy.bind(3);
    for (int k = 0; k < 3; ++k) original.step(w, g, 0.1);
    checkpoint::writer out;
    original.save(out, "optimizer/");
    out.add("parameters", w);
    out.save(here / "saved");

    const checkpoint saved = checkpoint::load(here / "saved");
    auto resumed = policy.bind(3);
    resumed.restore(saved, "optimizer/");
    std::vector<float> again(3);
    saved.read("parameters", again);
    original.step(w, g, 0.1);
    resumed.step(again, g, 0.1);
    CHECK(again == w);

    auto wider = policy.bind(4);
    const std::string message = message_of<data_error>([&] { wider.restore(saved, "optimizer/"); });
    CHECK_MESSAGE(has(message, "section \"optimizer/velocity\": expected 4 × float32, found 3 × float32"), message);
}

TEST_CASE("sgd: wrong options are named, wrong sizes break the contract") {
    CHECK(has(message_of<contract_violation>([] { sgd{.momentum = 1}.bind(1); }),
              "rill: train::sgd: momentum is 1; it must be in [0, 1)"));
    CHECK(has(message_of<contract_violation>([] { sgd{.nesterov = true}.bind(1); }),
              "train::sgd: momentum is 0; it must be above 0 where nesterov is set"));
    CHECK(has(message_of<contract_violation>([] { sgd{.weight_decay = -1}.bind(1); }),
              "train::sgd: weight_decay is -1; it must be at least 0"));
    // As floats these are 1 and infinite.
    CHECK_THROWS_AS(sgd{.momentum = 0.99999999999}.bind<float>(1), contract_violation);
    CHECK_THROWS_AS(sgd{.weight_decay = 1e39}.bind<float>(1), contract_violation);
    CHECK_NOTHROW(sgd{.momentum = 0.99999999999, .weight_decay = 1e39}.bind<double>(1));
    std::vector<float> w(3), g(2);
    auto optimizer = sgd{}.bind(3);
    CHECK_THROWS_AS(optimizer.step(w, g, 1), contract_violation);
    const stream<float> narrow(2), right(3);
    CHECK_THROWS_AS(optimizer.step(w, narrow.view(), 1), contract_violation);
    CHECK_THROWS_AS(optimizer.step(g, right.view(), 1), contract_violation);
}

TEST_CASE("sgd: a sparse stream has the effect of the dense vector that it stands for") {
    constexpr std::size_t n = 200;  // whole blocks and a remainder
    for (const sgd policy : {sgd{}, sgd{.momentum = 0.9}, sgd{.weight_decay = 0.01},
                             sgd{.momentum = 0.5, .weight_decay = 0.1, .nesterov = true}}) {
        std::vector<double> dense(n, 1.0), sparse(n, 1.0);
        auto one = policy.bind<double>(n), other = policy.bind<double>(n);
        for (std::size_t step = 0; step < 4; ++step) {
            stream<double> gradient(n);
            std::vector<double> spread(n);
            for (std::size_t i = step; i < n; i += 1 + i % 7) gradient.push_back(i, static_cast<double>(i) - 80.5);
            copy_dense(gradient.view(), std::span<double>(spread), 0.0);
            one.step(dense, spread, 0.1);
            other.step(sparse, gradient.view(), 0.1);
            for (std::size_t i = 0; i < n; ++i) CHECK(sparse[i] == doctest::Approx(dense[i]).epsilon(1e-12));
        }
        stream<double> full;
        full.assign({segment{0, n}, std::span<const double>(dense)});
        one.step(dense, std::vector<double>(dense), 0.1);
        other.step(sparse, full.view(), 0.1);
        for (std::size_t i = 0; i < n; ++i) CHECK(sparse[i] == doctest::Approx(dense[i]).epsilon(1e-12));
    }
}
