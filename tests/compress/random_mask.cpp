#include <rill/compress/random_mask.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;

namespace {
constexpr std::size_t n = 10000;

/// The coordinates of the mask of the next step: those whose entries survive a round trip.
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

TEST_CASE("ranks with the same seed have the same mask; each operation has another one") {
    const compress::random_mask policy{.density = 0.05, .seed = 9};
    auto a = policy.bind(n);
    auto b = policy.bind(n);
    auto other = compress::random_mask{.density = 0.05, .seed = 10}.bind(n);
    a.begin(1);
    b.begin(1);
    other.begin(1);
    CHECK(mask_of(a) != mask_of(other));
    const auto first = mask_of(a);
    CHECK(mask_of(b) == first);
    a.commit();
    a.begin(2);
    a.rollback();
    a.begin(3);
    b.begin(3);  // a codec's history does not change its masks
    const auto third = mask_of(a);
    CHECK(mask_of(b) == third);
    CHECK(third != first);
}

TEST_CASE("random_mask refuses an invalid density") {
    CHECK_THROWS_AS(compress::random_mask{.density = 0}.bind(n), contract_violation);
    CHECK_THROWS_AS(compress::random_mask{.density = 1.1}.bind(n), contract_violation);
    CHECK_THROWS_AS(compress::random_mask{.density = NAN}.bind(n), contract_violation);
}
