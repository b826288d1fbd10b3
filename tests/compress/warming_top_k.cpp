#include <rill/compress/warming_top_k.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace rill;
using namespace rill::compress_tests;

TEST_CASE("warming_top_k: the share falls by the same factor with each operation, then stays") {
    const compress::warming_top_k policy{.density = 0.01, .initial = 0.16, .operations = 4};
    const double expected[] = {0.16, 0.08, 0.04, 0.02, 0.01, 0.01};
    for (std::uint64_t i = 0; i < 6; ++i) CHECK(policy.density_at(i + 1) == doctest::Approx(expected[i]));
    CHECK(policy.density_at(std::uint64_t(-1)) == 0.01);
    CHECK(compress::warming_top_k{.density = 0.3, .initial = 0.3}.density_at(0) == 0.3);
}

TEST_CASE("warming_top_k: each operation sends the entries of top_k at that density") {
    constexpr std::size_t n = 1000;
    const compress::warming_top_k policy{.density = 0.01, .initial = 1, .operations = 10};
    auto codec = policy.bind(n);
    for (const std::uint64_t number : {0U, 3U, 9U, 10U, 4U, 1000U}) {
        CAPTURE(number);
        const auto input = gradient<float>(n, number);
        auto plain = compress::top_k{.density = policy.density_at(number)}.bind(n);
        codec.begin(number);
        const auto sent = codec.encode(input), due = plain.encode(input);
        CHECK(same_bits<std::uint32_t>(sent.indices(), due.indices()));
        CHECK(same_bits<float>(sent.values(), due.values()));
    }
}

TEST_CASE("warming_top_k: the first operation of a group sends the initial share") {
    in_process::run(2, [](auto& net) {
        group workers{net, topology::ring{}, {.timeout = seconds(20)}};
        auto codec = compress::warming_top_k{.density = 0.1, .initial = 0.4, .operations = 2}.bind(10);
        const std::vector<float> input{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        std::vector<float> sum(input.size());
        for (const int entries : {4, 2, 1, 1}) {
            all_reduce(workers, input, sum, codec);
            CHECK(std::count(sum.begin(), sum.end(), 0.0F) == 10 - entries);
        }
    });
}

TEST_CASE("warming_top_k: options out of range are named") {
    using policy = compress::warming_top_k;
    CHECK_THROWS_WITH_AS(
        (policy{.density = 0.5, .initial = 0.25}.bind(10)),
        "rill: compress::warming_top_k: density is 0.5; it must be above 0 and at most the initial one",
        contract_violation);
    CHECK_THROWS_AS((policy{.density = 0}.bind(10)), contract_violation);
    CHECK_THROWS_AS((policy{.density = NAN}.bind(10)), contract_violation);
    CHECK_THROWS_AS((policy{.density = 0.5, .initial = 1.5}.bind(10)), contract_violation);
    CHECK_THROWS_AS((policy{.density = 0.5, .initial = NAN}.bind(10)), contract_violation);
}
