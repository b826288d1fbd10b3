#include <rill/compress/error_feedback.hpp>

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/row_top_k.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <vector>

using namespace rill;
using namespace rill::compress_tests;

namespace {

constexpr std::size_t n = 300;

template <class T, class Codec>
std::vector<T> residual_of(const Codec& codec) {
    return {codec.residual().begin(), codec.residual().end()};
}

/// What a view contributes, as a dense vector, and which coordinates it has.
template <class T>
struct contribution_of {
    std::vector<T> values = std::vector<T>(n, T{0});
    std::vector<bool> sent = std::vector<bool>(n, false);

    template <class Codec, class View>
    contribution_of(Codec& codec, const View& view) {
        if constexpr (Codec::is_coordinatewise) {
            for (std::size_t j = 0; j < view.count(); ++j) {
                const std::size_t i = view.is_dense() ? j : static_cast<std::size_t>(view.indices()[j]);
                values[i] = view.values()[j];
                sent[i] = true;
            }
        } else {
            std::vector<T> ones(view.count(), T{1}), mask(n);
            codec.decode(ones, mask);
            codec.decode(view.values(), values);
            for (std::size_t i = 0; i < n; ++i) sent[i] = mask[i] != T{0};
        }
    }
};

/// Thirty steps, every third of which fails: nothing is lost, bit for bit.
template <class T, class Policy>
void check_mass(const Policy& policy) {
    auto codec = compress::error_feedback{policy}.template bind<T>(n);
    CHECK(residual_of<T>(codec) == std::vector<T>(n, T{0}));
    for (std::uint64_t step = 0; step < 30; ++step) {
        CAPTURE(step);
        const auto input = gradient<T>(n, step);
        const auto unchanged = input;
        const auto before = residual_of<T>(codec);
        std::vector<T> sum(n);
        for (std::size_t i = 0; i < n; ++i) sum[i] = static_cast<T>(before[i] + input[i]);
        codec.begin(step);
        const contribution_of<T> given(codec, codec.encode(input));
        CHECK(input == unchanged);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i)
            if (given.sent[i] && !same_bits<T>({&given.values[i], 1}, {&sum[i], 1})) ++wrong;
        CHECK(wrong == 0);
        if (step % 3 == 2) {
            codec.rollback();
            CHECK(same_bits<T>(codec.residual(), sum));
            continue;
        }
        codec.commit();
        for (std::size_t i = 0; i < n; ++i)
            if (given.sent[i]) sum[i] = T{0};
        CHECK(same_bits<T>(codec.residual(), sum));
    }
}

}  // namespace

TEST_CASE_TEMPLATE("sent plus new residual is input plus old residual, bit for bit", T, float, double, std::int32_t) {
    check_mass<T>(compress::top_k{.density = 0.05});
    check_mass<T>(compress::top_k{.count = n});
    check_mass<T>(compress::bucket_top_k{.count = 2, .bucket = 64});
    check_mass<T>(compress::row_top_k{.columns = 16, .count = 3});
    check_mass<T>(compress::threshold{.limit = 0.5});
    check_mass<T>(compress::random_mask{.density = 0.1});
    check_mass<T>(compress::keep_all{});
    check_mass<T>(compress::encoded{compress::top_k{.density = 0.05}, compress::raw{}, compress::packed_gaps{}});
    if constexpr (std::floating_point<T>)
        check_mass<T>(compress::encoded{compress::top_k{.density = 0.05}, compress::qsgd{}, compress::packed_gaps{}});
}

TEST_CASE("a step without a contribution does not change the residual") {
    auto codec = compress::error_feedback{compress::top_k{.count = 3}}.bind(n);
    codec.encode(gradient<float>(n, 1));
    codec.commit();
    const auto before = residual_of<float>(codec);
    codec.commit();
    CHECK(residual_of<float>(codec) == before);
    codec.rollback();
    CHECK(residual_of<float>(codec) == before);
}

TEST_CASE("a non-finite input is refused with its coordinate and does not change the residual") {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        auto codec = compress::error_feedback{compress::top_k{.count = 3}}.bind(n);
        codec.encode(gradient<float>(n, 1));
        codec.commit();
        const auto before = residual_of<float>(codec);
        auto input = gradient<float>(n, 2);
        input[217] = bad;
        CHECK_THROWS_WITH_AS(codec.encode(input), "rill: the gradient is not finite at coordinate 217", invalid_value);
        codec.rollback();
        CHECK(residual_of<float>(codec) == before);
    }
    auto codec = compress::error_feedback{compress::top_k{.count = 1}}.bind(2);
    CHECK_THROWS_AS(codec.encode(std::vector<float>(3)), contract_violation);
    CHECK_THROWS_AS(codec.scale_inputs(NAN), contract_violation);
    CHECK_THROWS_AS(codec.scale_inputs(-INFINITY), contract_violation);
}

TEST_CASE("what receivers have rounded is refused where the compressor's type excludes that codings round") {
    auto exact = compress::error_feedback{compress::top_k{.count = 3}}.bind(n);
    const auto sent = exact.encode(gradient<float>(n, 1));
    CHECK_THROWS_AS(exact.take_received(sent), contract_violation);
    auto rounding = compress::error_feedback{compress::encoded{compress::top_k{.count = 3}, compress::bf16{}}}.bind(n);
    CHECK_NOTHROW(rounding.take_received(rounding.encode(gradient<float>(n, 1))));
}

TEST_CASE("an input whose sum with the residual would not be finite is refused, and none of it is added") {
    const float huge = std::numeric_limits<float>::max();
    const std::vector<float> first{1, huge, -huge, 2}, beside{huge, 0, 0, -huge}, beyond{1, 1, -huge, 1};
    auto codec = compress::error_feedback{compress::top_k{.count = 1}}.bind(4);
    codec.encode(first);
    codec.rollback();
    const auto refuses = [&](auto& one) {
        const auto before = residual_of<float>(one);
        CHECK_THROWS_WITH_AS(one.encode(beyond), "rill: the gradient is not finite at coordinate 2", invalid_value);
        one.rollback();
        CHECK(residual_of<float>(one) == before);
    };
    refuses(codec);
    memory_checkpoint file;
    codec.save(file, "codec");
    auto restored = compress::error_feedback{compress::top_k{.count = 1}}.bind(4);
    restored.restore(file, "codec");
    refuses(restored);
    codec.encode(beside);  // the sum of the magnitudes exceeds any float, but no single coordinate does
    codec.rollback();
    CHECK(residual_of<float>(codec) == std::vector<float>{huge, huge, -huge, -huge});
    codec.scale_inputs(-1);
    codec.encode(beyond);
    codec.rollback();
    CHECK(residual_of<float>(codec)[2] == 0);
}

TEST_CASE("if the inner codec fails, the whole contribution stays in the residual, even if a commit follows") {
    using selecting = decltype(compress::top_k{.count = 1}.bind(2));
    struct failing : selecting {
        const bool& fails;

        auto encode(std::span<const float> input) {
            if (fails) throw std::bad_alloc();
            return selecting::encode(input);
        }
    };
    bool fails = false;
    compress::error_feedback_codec<failing, float> codec(failing{compress::top_k{.count = 1}.bind(2), fails});
    const std::vector<float> input{1, 2};
    codec.encode(input);
    codec.commit();
    CHECK(residual_of<float>(codec) == std::vector<float>{1, 0});
    fails = true;
    CHECK_THROWS_AS(codec.encode(input), std::bad_alloc);
    codec.commit();
    CHECK(residual_of<float>(codec) == std::vector<float>{2, 2});
}

TEST_CASE("a restored codec continues with the same bits") {
    const auto go_on = [](auto policy) {
        auto codec = compress::error_feedback{policy}.bind(n);
        for (std::uint64_t step = 0; step < 5; ++step) {
            codec.encode(gradient<float>(n, step));
            codec.commit();
        }
        memory_checkpoint file;
        codec.save(file, "codec");
        auto restored = compress::error_feedback{policy}.bind(n);
        restored.encode(gradient<float>(n, 99));  // the restored state does not know this contribution
        restored.restore(file, "codec");
        CHECK(residual_of<float>(restored) == residual_of<float>(codec));
        restored.commit();
        codec.commit();
        CHECK(residual_of<float>(restored) == residual_of<float>(codec));
        const auto input = gradient<float>(n, 6);
        const contribution_of<float> expected(codec, codec.encode(input)), given(restored, restored.encode(input));
        CHECK(given.values == expected.values);
        CHECK(given.sent == expected.sent);
    };
    go_on(compress::top_k{.count = 5});
    go_on(compress::random_mask{.density = 0.1});
}

TEST_CASE("error_feedback: inputs are multiplied by the factor that scale_inputs was given") {
    auto scaled = compress::error_feedback{compress::top_k{.count = 20}}.bind(n);
    auto plain = compress::error_feedback{compress::top_k{.count = 20}}.bind(n);
    for (std::uint64_t step = 0; step < 5; ++step) {
        const auto input = gradient<float>(n, step);
        const float factor = 0.3F / static_cast<float>(step + 1);
        std::vector<float> product(n);
        for (std::size_t i = 0; i < n; ++i) product[i] = factor * input[i];
        scaled.scale_inputs(factor);
        scaled.begin(step);
        plain.begin(step);
        const auto a = scaled.encode(input), b = plain.encode(product);
        CHECK(same_bits<float>(a.values(), b.values()));
        scaled.commit();
        plain.commit();
        CHECK(residual_of<float>(scaled) == residual_of<float>(plain));
    }
}

TEST_CASE("error_feedback: exactly what the receivers decode leaves the residual") {
    using compress::bf16, compress::encoded, compress::keep_all, compress::qsgd, compress::top_k;
    const std::vector<float> input{1, 2, 3, 4}, decoded{1.5F, 2, 2.75F, 4};
    const auto after_commit = [&](auto policy) {
        auto codec = policy.bind(4);
        codec.begin(1);
        const auto sent = codec.encode(input);
        codec.take_received(stream_view<float>({0, 2}, std::span(decoded).first(2)));
        codec.take_received(stream_view<float>({2, 4}, std::span(decoded).last(2)));
        CHECK(same_bits<float>(sent.values(), input));
        codec.commit();
        return residual_of<float>(codec);
    };
    const std::vector<float> rest{-0.5F, 0, 0.25F, 0}, nothing(4);
    CHECK(after_commit(compress::error_feedback{encoded{keep_all{}, bf16{}}}) == rest);
    CHECK(after_commit(compress::error_feedback{encoded{top_k{.count = 4}, bf16{}}}) == rest);
    CHECK(after_commit(compress::error_feedback{encoded{compress::random_mask{.density = 1}, bf16{}}}) == rest);
    CHECK(after_commit(compress::error_feedback{encoded{keep_all{}, qsgd{}}}) == nothing);
    CHECK(after_commit(compress::error_feedback{encoded{keep_all{}, qsgd{}}, true}) == rest);
}

TEST_CASE("error_feedback: an operation that ends without a commit, and a copy, leave everything in the residual") {
    auto codec = compress::error_feedback{compress::top_k{.count = 2}}.bind(4);
    const std::vector<float> input{1, 2, 3, 4};
    codec.encode(input);
    auto copy = codec;
    copy.commit();
    CHECK(residual_of<float>(copy) == input);
    codec.begin(2);
    codec.commit();
    CHECK(residual_of<float>(codec) == input);
}
