#include <rill/compress/with_codings.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/own_values.hpp>
#include <rill/compress/signs.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/contract.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

using namespace rill;
using namespace rill::compress;

namespace {

/// The third sum of 64 coordinates by three ranks, and then this rank's residual.
template <class Policy>
std::vector<std::vector<float>> third_sums(const Policy& policy) {
    std::vector<std::vector<float>> results(3);
    simulated::run(3, {}, [&](simulated::endpoint& self) {
        group workers{self, topology::split_allgather{}, {.timeout = seconds(10), .seed = 4}};
        auto codec = policy.template bind<float>(64);
        std::vector<float> mine(64), sum(64);
        for (std::size_t i = 0; i < 64; ++i)
            mine[i] = 1.0F / static_cast<float>(static_cast<std::size_t>(self.rank()) + (i * 37) % 64 + 1);
        for (int step = 0; step < 3; ++step) all_reduce(workers, mine, sum, codec);
        sum.insert(sum.end(), codec.residual().begin(), codec.residual().end());
        results[static_cast<std::size_t>(self.rank())] = sum;
    });
    return results;
}

}  // namespace

TEST_CASE("with_codings: gives the codings that it is given, and the bits of the policy that names them") {
    const encoded named{top_k{.count = 9}, qsgd{.bits = 4, .bucket = 8}, elias_fano{}, qsgd{.bits = 2, .bucket = 16}};
    const with_codings given{top_k{.count = 9}, named.codings()};
    CHECK(given.bind(64).codings() == named.codings());
    CHECK(third_sums(error_feedback{given}) == third_sums(error_feedback{named}));
    CHECK(third_sums(error_feedback{with_codings{top_k{.count = 9}, {}}}) != third_sums(error_feedback{named}));
}

TEST_CASE("with_codings: promises nothing that a coding could break, and refuses lossy partial sums") {
    using bound = decltype(with_codings{top_k{.count = 1}, {}}.bind(1));
    CHECK(Compressor<bound, float>);
    CHECK_FALSE((bound::is_lossless || bound::is_unbiased || bound::has_lossless_copy));
    CHECK(bound::is_contractive);
    const with_codings rounded{top_k{.count = 1}, {.partial = {.values = value_coding::bf16}}};
    CHECK_THROWS_AS(rounded.bind(8), contract_violation);
    // The error of a sign is as large as it likes: error feedback would not end.
    const with_codings by_signs{top_k{.count = 1}, {.contribution = own_values{signs{}}.coding()}};
    CHECK_NOTHROW(by_signs.bind(8));
    CHECK_THROWS_AS(error_feedback{by_signs}.bind(8), contract_violation);
}
