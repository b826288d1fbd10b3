#include <rill/system/sparcml.hpp>

#include <rill/core/random.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

using namespace rill;

namespace {

constexpr std::size_t n = 5000;

std::vector<float> gradient() {
    random_sequence random(random_key{7});
    std::vector<float> values(n);
    for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
    return values;
}

template <class A, class B>
bool same(const A& a, const B& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Whether the system's codec sends the entries that `policy` chooses.
template <class Policy>
bool sends_those_of(const systems::sparcml_options& options, const Policy& policy) {
    auto codec = systems::sparcml(options, train::sgd{}, train::constant_rate{0.1}).codec.bind(n);
    auto plain = policy.bind(n);
    const std::vector<float> input = gradient();
    const auto sent = codec.encode(input), due = plain.encode(input);
    return same(sent.indices(), due.indices()) && same(sent.values(), due.values());
}

auto bound(const systems::sparcml_options& options) {
    return systems::sparcml(options, train::sgd{}, train::constant_rate{0.1}).codec.bind(n);
}

}  // namespace

TEST_CASE("sparcml: an alias for its composition, with the chosen options") {
    const auto plan = systems::sparcml({.density = 0.02, .bits = 8}, train::sgd{.momentum = 0.5},
                                       train::constant_rate{0.1}, train::clip_norm{.most = 3});
    static_assert(train::Strategy<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    CHECK(plan.codec.compressor.sparsifier.options.density == 0.02);
    CHECK(plan.codec.compressor.copy_values.bits == 8);
    CHECK(plan.optimizer.momentum == 0.5);
    CHECK(plan.rate.value == 0.1);
    CHECK(plan.clip.most == 3);
    CHECK(plan.codec.compressor.codings().contribution.is_lossless());
}

TEST_CASE("sparcml: the largest of all entries, or of each bucket") {
    CHECK(sends_those_of({.density = 0.02}, compress::top_k{.density = 0.02}));
    CHECK(sends_those_of({.density = 1}, compress::top_k{.density = 1}));
    CHECK(sends_those_of({.bucket = 512, .keep = 16}, compress::bucket_top_k{.count = 16, .bucket = 512}));
    CHECK(sends_those_of({.bucket = 7, .keep = 7}, compress::bucket_top_k{.count = 7, .bucket = 7}));
    CHECK(sends_those_of({.bucket = 2 * n, .keep = 9}, compress::top_k{.count = 9}));
}

TEST_CASE("sparcml: contributions have as many bits as are chosen, and the residual does not keep their rounding") {
    const auto codec = bound({.source_bits = 4});
    CHECK(codec.codings().contribution.values == value_coding::qsgd4);
    CHECK(codec.codings().copy.values == value_coding::qsgd4);
    CHECK(bound({.bits = 2, .source_bits = 8}).codings().contribution.values == value_coding::qsgd8);
    CHECK(bound({}).codings().contribution.values == value_coding::raw);
}

TEST_CASE("sparcml: options out of range are named") {
    CHECK_THROWS_WITH_AS(bound({.bucket = 512}),
                         "rill: systems::sparcml: keep is 0; it must be at least 1 and at most the bucket",
                         contract_violation);
    CHECK_THROWS_AS(bound({.bucket = 8, .keep = 9}), contract_violation);
    CHECK_THROWS_AS(bound({.density = 0}), contract_violation);
    CHECK_THROWS_AS(bound({.density = NAN}), contract_violation);
    CHECK_THROWS_AS(bound({.source_bits = 3}), contract_violation);
    CHECK_THROWS_AS(bound({.bits = 0}), contract_violation);
}

TEST_CASE("sparcml: with quantised contributions of each bucket, all ranks move alike and near the sum") {
    in_process::run(3, [](auto& net) {
        const layer layers[] = {{"all", {0, n}}};
        auto strategy = systems::sparcml({.bits = 8, .source_bits = 8, .bucket = 64, .keep = 64}, train::sgd{},
                                         train::constant_rate{1})
                            .template bind<float>(net, layers);
        std::vector<float> model(n), own = gradient();
        const std::vector<float> same_on_all = own;
        strategy.step(std::span(model), std::span(own), 0, [] { return 0.0; });
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i)
            worst = std::max(worst, std::abs(static_cast<double>(model[i]) + static_cast<double>(same_on_all[i])));
        CHECK(worst < 0.02);  // two roundings of 8 bits at values below a half
        CHECK(worst > 0);
    });
}
