#include <rill/compress/momentum_correction.hpp>

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace rill;
using namespace rill::compress_tests;

namespace {

constexpr std::size_t n = 300;

auto policy_of(std::size_t count, double momentum) {
    return compress::momentum_correction{compress::error_feedback{compress::top_k{.count = count}}, momentum};
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

/// What the paper's formulas give, with the entries that are sent told from outside.
struct reference {
    std::vector<float> velocity = std::vector<float>(n), residual = std::vector<float>(n);
    float momentum = 0;

    void add(const std::vector<float>& gradient, float rate) {
        for (std::size_t i = 0; i < n; ++i) {
            const float kept = momentum * velocity[i];
            velocity[i] = gradient[i] + kept;
            const float step = rate * velocity[i];
            residual[i] = residual[i] + step;
        }
    }
    void send(std::size_t i) { velocity[i] = residual[i] = 0; }
};

}  // namespace

TEST_CASE("momentum_correction: velocity, residual and what is sent are those of the paper's formulas") {
    auto codec = policy_of(20, 0.75).bind(n);
    reference plain{.momentum = 0.75F};
    for (std::uint64_t step = 0; step < 30; ++step) {
        CAPTURE(step);
        const auto input = gradient<float>(n, step);
        const float rate = 0.5F / static_cast<float>(step + 1);
        codec.scale_inputs(rate);
        codec.begin(step);
        plain.add(input, rate);
        const auto sent = codec.encode(input);
        REQUIRE(sent.count() == 20);
        std::size_t wrong = 0;
        for (std::size_t j = 0; j < 20; ++j) wrong += sent.values()[j] == plain.residual[sent.indices()[j]] ? 0U : 1U;
        CHECK(wrong == 0);
        CHECK(copy_of(codec.velocity()) == plain.velocity);
        if (step % 3 == 2) {  // nothing of it is in the result
            codec.rollback();
        } else {
            for (const auto i : sent.indices()) plain.send(i);
            codec.commit();
        }
        CHECK(copy_of(codec.velocity()) == plain.velocity);
        CHECK(copy_of(codec.inner().residual()) == plain.residual);
    }
}

TEST_CASE("momentum_correction: without momentum it is the compressor that it holds") {
    auto corrected = policy_of(7, 0).bind(n);
    auto plain = compress::error_feedback{compress::top_k{.count = 7}}.bind(n);
    for (std::uint64_t step = 0; step < 5; ++step) {
        const auto input = gradient<float>(n, step);
        CHECK(same_bits<float>(corrected.encode(input).values(), plain.encode(input).values()));
        corrected.commit();
        plain.commit();
        CHECK(copy_of(corrected.inner().residual()) == copy_of(plain.residual()));
    }
}

TEST_CASE("momentum_correction: a constant gradient arrives with the momentum of plain descent") {
    constexpr int steps = 2000;
    auto codec = policy_of(30, 0.9).bind(n);
    const std::vector<float> one(n, 1.0F);
    std::vector<double> arrived(n);
    for (int step = 0; step < steps; ++step) {
        const auto sent = codec.encode(one);
        for (std::size_t j = 0; j < sent.count(); ++j) arrived[sent.indices()[j]] += sent.values()[j];
        codec.commit();
    }
    // Every entry is sent in each tenth step: its velocity then is 1, 1.9, ... after 1, 2, ... steps, and begins anew.
    double cycle = 0, velocity = 0;
    for (int i = 0; i < 10; ++i) cycle += velocity = 0.9 * velocity + 1;
    for (const double sum : arrived) CHECK(sum == doctest::Approx(cycle * steps / 10).epsilon(0.01));
}

TEST_CASE("momentum_correction: an input that is refused changes neither the velocity nor the residual") {
    auto codec = policy_of(3, 0.9).bind(n);
    codec.encode(gradient<float>(n, 1));
    codec.commit();
    const auto velocity = copy_of(codec.velocity()), residual = copy_of(codec.inner().residual());
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        auto input = gradient<float>(n, 2);
        input[217] = bad;
        CHECK_THROWS_WITH_AS(codec.encode(input), "rill: the gradient is not finite at coordinate 217", invalid_value);
        codec.commit();
        CHECK(copy_of(codec.velocity()) == velocity);
        CHECK(copy_of(codec.inner().residual()) == residual);
    }
    const std::vector<float> huge(n, std::numeric_limits<float>::max());
    codec.encode(huge);
    codec.rollback();
    CHECK_THROWS_AS(codec.encode(huge), invalid_value);
    CHECK_THROWS_AS(codec.encode(std::vector<float>(n + 1)), contract_violation);
}

TEST_CASE("momentum_correction: a restored codec continues with the same bits") {
    auto codec = policy_of(5, 0.9).bind(n);
    for (std::uint64_t step = 0; step < 5; ++step) {
        codec.encode(gradient<float>(n, step));
        codec.commit();
    }
    memory_checkpoint file;
    codec.save(file, "codec");
    auto restored = policy_of(5, 0.9).bind(n);
    restored.encode(gradient<float>(n, 99));
    restored.restore(file, "codec");
    restored.commit();  // of what restore has replaced
    const auto input = gradient<float>(n, 6);
    CHECK(same_bits<float>(restored.encode(input).values(), codec.encode(input).values()));
    CHECK(copy_of(restored.velocity()) == copy_of(codec.velocity()));
    auto other = policy_of(5, 0.9).bind(n + 1);
    const auto before = copy_of(other.velocity());
    CHECK_THROWS(other.restore(file, "codec"));
    CHECK(copy_of(other.velocity()) == before);
}

TEST_CASE("momentum_correction: options out of range are named") {
    CHECK_THROWS_WITH_AS(policy_of(5, 1).bind(n),
                         "rill: compress::momentum_correction: momentum is 1; it must be in [0, 1)",
                         contract_violation);
    CHECK_THROWS_AS(policy_of(5, -0.5).bind(n), contract_violation);
    CHECK_THROWS_AS(policy_of(5, NAN).bind(n), contract_violation);
}
