// Compares the bits and errors of an executor with those of `serial`, kernel by kernel.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/bf16.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/stream/fold.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace support {

inline constexpr std::size_t many = 300'001;  // several tasks, and not a multiple of any block size
inline constexpr std::size_t two_tasks = 2 * rill::kernel::tasks::least;

/// The shape of an input vector. A `clustered` one has all its large entries in one place, and many equal ones.
enum class shape { plain, clustered, few_values, mostly_zero, zero };

template <rill::Element T>
std::vector<T> vector_of(std::size_t n, int seed, shape kind = shape::plain) {
    const rill::counter_rng random(rill::random_key{static_cast<std::uint64_t>(seed)});
    std::vector<T> x(n);
    for (std::size_t i = 0; i < n; ++i) {
        const float u = 1000 * (random.uniform(2 * i) + random.uniform(2 * i + 1) - 1);
        const bool large = i > n / 2 && i < n / 2 + n / 20;
        switch (kind) {
            case shape::plain: x[i] = static_cast<T>(u); break;
            case shape::clustered:
                x[i] = large ? static_cast<T>(static_cast<int>(u / 20) + 9000) : static_cast<T>(u);
                break;
            case shape::few_values: x[i] = static_cast<T>(static_cast<int>(u / 300)); break;
            case shape::mostly_zero: x[i] = static_cast<T>(random.bits(2 * i) % 200 == 0 ? u : 0); break;
            case shape::zero: x[i] = static_cast<T>(i % 2 == 0 ? 0.0 : -0.0); break;
        }
    }
    return x;
}

/// Random coordinates, about one in `gap`.
template <rill::Element T>
rill::stream<T> stream_of(std::size_t n, int seed, std::uint64_t gap) {
    const rill::counter_rng random(rill::random_key{99}.derive(seed));
    rill::stream<T> x(n);
    for (std::size_t i = 0; i < n; ++i)
        if (random.bits(i) % gap == 0) x.push_back(i, static_cast<T>(1000 * random.uniform(i + n) - 500));
    return x;
}

template <class A, class B>
bool equal_bits(const A& a, const B& b) {
    const auto left = std::as_bytes(std::span(a)), right = std::as_bytes(std::span(b));
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

/// Neither commutative nor associative.
inline constexpr auto skew = [](auto a, auto b) { return static_cast<decltype(a)>(a - 2 * b); };

template <rill::Element T, class Executor>
bool same_dense_fold(const Executor& executor, std::size_t n) {
    const std::vector<T> x[] = {vector_of<T>(n, 1), vector_of<T>(n, 2), vector_of<T>(n, 3)};
    const std::span<const T> inputs[] = {x[0], x[1], x[2]};
    std::vector<T> expected(n), made(n);
    rill::kernel::fold_dense_k<T>(inputs, expected, skew);
    rill::kernel::fold_dense_k<T>(inputs, made, skew, executor);
    return equal_bits(made, expected);
}

template <rill::Element T, class Executor>
bool same_top_k(const Executor& executor, const std::vector<T>& x, std::size_t k) {
    rill::kernel::select_scratch one, other;
    std::vector<std::uint32_t> expected(k), made(k);
    rill::kernel::top_k(std::span(x), k, std::span(expected), one);
    rill::kernel::top_k(std::span(x), k, std::span(made), other, executor);
    std::vector<T> some(k), others(k);
    rill::kernel::gather(std::span(x), std::span<const std::uint32_t>(expected), std::span(some));
    rill::kernel::gather(std::span(x), std::span<const std::uint32_t>(expected), std::span(others), executor);
    return made == expected && equal_bits(some, others);
}

template <rill::Element T, class Executor>
bool same_bucket_top_k(const Executor& executor, const std::vector<T>& x, std::size_t bucket, std::size_t k) {
    rill::kernel::select_scratch one, other;
    std::vector<std::uint32_t> expected(rill::kernel::bucket_top_k_count(x.size(), bucket, k)), made(expected.size());
    rill::kernel::bucket_top_k(std::span(x), bucket, k, std::span(expected), one);
    rill::kernel::bucket_top_k(std::span(x), bucket, k, std::span(made), other, executor);
    return made == expected;
}

template <std::floating_point T, class Executor>
bool same_quantisation(const Executor& executor, std::size_t n, unsigned bits, std::size_t bucket) {
    const auto x = vector_of<T>(n, 6);
    std::vector<T> scales(rill::kernel::quantize_buckets(n, bucket)), other_scales(scales.size());
    std::vector<std::byte> codes(rill::kernel::quantized_bytes(n, bits, bucket)), other_codes(codes.size());
    const rill::random_key key{7};
    rill::kernel::quantize(std::span(x), bits, bucket, key, 11, std::span(scales), codes);
    rill::kernel::quantize(std::span(x), bits, bucket, key, 11, std::span(other_scales), other_codes, executor);
    std::vector<T> values(n), others(n);
    rill::kernel::dequantize<T>(codes, scales, bits, bucket, values);
    rill::kernel::dequantize<T>(codes, scales, bits, bucket, others, executor);
    bool same = equal_bits(scales, other_scales) && equal_bits(codes, other_codes) && equal_bits(values, others);
    rill::kernel::dequantize_fold<T>(codes, scales, bits, bucket, values, skew);
    rill::kernel::dequantize_fold<T>(codes, scales, bits, bucket, others, skew, executor);
    return same && equal_bits(values, others);
}

template <std::floating_point T, class Executor>
bool same_bf16(const Executor& executor, std::size_t n) {
    const auto x = vector_of<T>(n, 6);
    std::vector<std::byte> halves(2 * n), other_halves(2 * n);
    rill::kernel::encode_bf16(std::span(x), halves);
    rill::kernel::encode_bf16(std::span(x), other_halves, executor);
    std::vector<T> values(n), others(n);
    rill::kernel::decode_bf16(halves, std::span(values));
    rill::kernel::decode_bf16(halves, std::span(others), executor);
    return equal_bits(halves, other_halves) && equal_bits(values, others);
}

/// Sparse and dense results of dense and sparse operands.
template <rill::Element T, class Executor>
bool same_stream_folds(const Executor& executor, std::size_t n, std::uint64_t gap) {
    const rill::stream<T> x[] = {stream_of<T>(n, 1, gap), stream_of<T>(n, 2, gap), stream_of<T>(n, 3, 50 * gap),
                                 stream_of<T>(n, 4, gap)};
    const rill::stream_view<T> operands[] = {x[0].view(), x[1].view(), x[2].view(), x[3].view()};
    bool same = true;
    for (const double factor : {0.0, 1e9}) {  // a dense result, then a sparse one
        rill::stream<T> expected, made;
        rill::fold_scratch<T, std::uint32_t> one, other;
        rill::fold_streams<T, std::uint32_t>(operands, expected, skew, T{}, {factor}, one);
        rill::fold_streams<T, std::uint32_t>(operands, made, skew, T{}, {factor}, other, executor);
        same = same && made.is_dense() == expected.is_dense() && equal_bits(made.indices(), expected.indices());
        same = same && equal_bits(made.values(), expected.values());
    }
    std::vector<T> expected(n, T{1}), made(n, T{1});
    rill::kernel::scatter_fold(x[0].view().pairs(), 0, std::span(expected), skew);
    rill::kernel::scatter_fold(x[0].view().pairs(), 0, std::span(made), skew, executor);
    same = same && equal_bits(made, expected);
    rill::copy_dense(x[1].view(), std::span(expected), T{3});
    rill::copy_dense(x[1].view(), std::span(made), T{3}, executor);
    return same && equal_bits(made, expected);
}

template <class Call>
std::string error_of(Call call) {
    try {
        call();
    } catch (const rill::error& e) {
        return e.what();
    }
    return "none";
}

/// Whether the kernels name the lowest of several NaN entries, as they do with `serial`.
template <std::floating_point T, class Executor>
bool same_errors(const Executor& executor, std::initializer_list<std::size_t> bad) {
    auto x = vector_of<T>(many, 8);
    for (const std::size_t each : bad) x[each] = std::numeric_limits<T>::quiet_NaN();
    const std::span<const T> input(x);
    rill::kernel::select_scratch scratch;
    std::vector<std::uint32_t> indices(many);
    std::vector<T> scales(rill::kernel::quantize_buckets(many, 512));
    std::vector<std::byte> codes(many);
    const auto errors = [&](const auto& by) {
        return error_of([&] { rill::kernel::top_k(input, 1000, std::span(indices), scratch, by); }) +
               error_of([&] { rill::kernel::bucket_top_k(input, 512, 2, std::span(indices), scratch, by); }) +
               error_of([&] { rill::kernel::quantize(input, 8, 512, {}, 0, std::span(scales), codes, by); });
    };
    const std::string named = " " + std::to_string(std::min(bad)) + " ", made = errors(executor);
    return made == errors(rill::serial{}) && (made + " ").find(named) != std::string::npos &&
           rill::kernel::find_non_finite(input, executor) == std::min(bad) &&
           rill::kernel::find_beyond_bf16(input, executor) == std::min(bad);
}

template <rill::Element T, class Executor>
void check_same_bits_of(const Executor& executor) {
    using rill::kernel::tasks;
    for (const std::size_t n : {std::size_t{0}, two_tasks - 1, two_tasks, two_tasks + 1, 3 * tasks::least + 5, many}) {
        CAPTURE(n);
        CHECK(same_dense_fold<T>(executor, n));
        CHECK(same_top_k(executor, vector_of<T>(n, 4), n / 100));
        CHECK(same_bucket_top_k(executor, vector_of<T>(n, 5), 512, 4));
        CHECK(same_stream_folds<T>(executor, n, 2));
    }
    for (const shape kind : {shape::clustered, shape::few_values, shape::mostly_zero, shape::zero}) {
        CAPTURE(static_cast<int>(kind));
        const auto x = vector_of<T>(many, 4, kind);
        for (const std::size_t k : {std::size_t{1}, many / 100, many / 3}) CHECK(same_top_k(executor, x, k));
        CHECK(same_bucket_top_k(executor, x, 40'000, 500));
    }
    CHECK(same_stream_folds<T>(executor, many, 9));
    if constexpr (std::floating_point<T>) {
        for (const unsigned bits : {2U, 4U, 8U}) CHECK(same_quantisation<T>(executor, many, bits, 1024));
        CHECK(same_quantisation<T>(executor, many, 2, 7));
        CHECK(same_quantisation<T>(executor, two_tasks, 4, 1'000'000));
        CHECK(same_bf16<T>(executor, many));
        CHECK(same_errors<T>(executor, {0}));
        CHECK(same_errors<T>(executor, {many - 1}));
        CHECK(same_errors<T>(executor, {many - 5, many / 2, 70'000}));
    }
}

/// Every kernel that takes an executor, with every type of elements.
template <class Executor>
void check_same_bits(const Executor& executor) {
    check_same_bits_of<float>(executor);
    check_same_bits_of<double>(executor);
    check_same_bits_of<std::int32_t>(executor);
    check_same_bits_of<std::int64_t>(executor);
}

}  // namespace support
