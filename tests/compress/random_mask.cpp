#include <rill/compress/random_mask.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;
using namespace rill::compress_tests;

namespace {
constexpr std::size_t n = 10000;

/// The coordinates of the mask of the next step: those that survive a round trip.
template <class Codec>
std::vector<std::size_t> mask_of(Codec& codec) {
    const std::vector<float> ones(n, 1.0F);
    std::vector<float> output(n, 99.0F);
    const auto view = codec.encode(ones);
    CHECK(view.is_dense());
    CHECK(view.range() == segment{0, codec.coded_dimension()});
    codec.decode(view.values(), output);
    std::vector<std::size_t> mask;
    for (std::size_t i = 0; i < n; ++i) {
        CHECK((output[i] == 1.0F || output[i] == 0.0F));
        if (output[i] != 0) mask.push_back(i);
    }
    CHECK(mask.size() == codec.coded_dimension());
    return mask;
}
}  // namespace

TEST_CASE("random_mask chooses each entry with the chance that its density says") {
    for (double density : {0.01, 0.3}) {
        auto codec = compress::random_mask{.density = density, .seed = 1}.bind(n);
        const double sigma = std::sqrt(n * density * (1 - density));
        CHECK(std::abs(static_cast<double>(mask_of(codec).size()) - n * density) < 5 * sigma);
    }
    auto all = compress::random_mask{.density = 1}.bind(n);
    CHECK(mask_of(all).size() == n);
}

TEST_CASE("ranks with one seed have one mask; each step, committed or not, another") {
    const compress::random_mask policy{.density = 0.05, .seed = 9};
    auto a = policy.bind(n);
    auto b = policy.bind(n);
    auto other = compress::random_mask{.density = 0.05, .seed = 10}.bind(n);
    CHECK(mask_of(a) != mask_of(other));
    const auto first = mask_of(a);
    CHECK(mask_of(b) == first);
    a.commit();
    b.rollback();
    const auto second = mask_of(a);
    CHECK(mask_of(b) == second);
    CHECK(second != first);
}

TEST_CASE("a restored mask goes on where it was") {
    const compress::random_mask policy{.density = 0.05};
    auto codec = policy.bind(n);
    for (int i = 0; i < 3; ++i) codec.commit();
    memory_checkpoint file;
    codec.save(file, "codec");
    auto restored = policy.bind(n);
    CHECK(mask_of(restored) != mask_of(codec));
    restored.restore(file, "codec");
    CHECK(mask_of(restored) == mask_of(codec));
    restored.commit();
    codec.commit();
    CHECK(mask_of(restored) == mask_of(codec));
}

TEST_CASE("random_mask refuses a density without sense") {
    CHECK_THROWS_AS(compress::random_mask{.density = 0}.bind(n), contract_violation);
    CHECK_THROWS_AS(compress::random_mask{.density = 1.1}.bind(n), contract_violation);
    CHECK_THROWS_AS(compress::random_mask{.density = NAN}.bind(n), contract_violation);
}
