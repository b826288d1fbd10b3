// bfloat16: the upper half of a float.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/tasks.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Converts float to bfloat16: rounds to nearest, ties to even; a NaN stays a NaN.
constexpr std::uint16_t to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
}

/// Converts bfloat16 to float, exactly.
constexpr float from_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

/// The least magnitude that bfloat16 rounds to infinity. A double is rounded to float first.
template <std::floating_point T>
inline constexpr T least_beyond_bf16 = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1.FFp127 : 0x1.FFp127 - 0x1p103);

/// Returns the first coordinate that bfloat16 cannot hold: infinite, NaN, or so large that it would become infinite.
template <std::floating_point T, Executor Exec = serial>
std::optional<std::size_t> find_beyond_bf16(std::span<const T> x, const Exec& executor = {}) {
    return detail::find_at_least(x, magnitude(least_beyond_bf16<T>), executor);
}

namespace detail {

template <std::floating_point T>
void encode_bf16_in_turn(std::span<const T> x, byte_span out) {
    std::uint16_t halves[block];
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) {
        for (std::size_t j = 0; j < block; ++j) halves[j] = little_endian(to_bf16(static_cast<float>(x[i + j])));
        std::memcpy(out.data() + 2 * i, halves, sizeof halves);
    }
    for (; i < x.size(); ++i) store_little(out.data() + 2 * i, to_bf16(static_cast<float>(x[i])));
}

template <std::floating_point T>
void decode_bf16_in_turn(byte_view bytes, std::span<T> out) {
    const auto value = [&](std::size_t i) {
        return static_cast<T>(from_bf16(load_little<std::uint16_t>(bytes.data() + 2 * i)));
    };
    std::size_t i = 0;
    for (; i + block <= out.size(); i += block)
        for (std::size_t j = 0; j < block; ++j) out[i + j] = value(i + j);
    for (; i < out.size(); ++i) out[i] = value(i);
}

}  // namespace detail

/// Writes `x` as little-endian bfloat16, 2 bytes each. A double is rounded to float first.
template <std::floating_point T, Executor Exec = serial>
void encode_bf16(std::span<const T> x, byte_span out, const Exec& executor = {}) {
    RILL_EXPECTS(out.size() == 2 * x.size(), "encode_bf16: two bytes for each value");
    run_tasks(executor, tasks_for(executor, x.size(), detail::block), [&](segment part) {
        detail::encode_bf16_in_turn(x.subspan(part.begin, part.size()), out.subspan(2 * part.begin, 2 * part.size()));
    });
}

/// Reads what `encode_bf16` wrote. Any bytes are valid.
template <std::floating_point T, Executor Exec = serial>
void decode_bf16(byte_view bytes, std::span<T> out, const Exec& executor = {}) {
    RILL_EXPECTS(bytes.size() == 2 * out.size(), "decode_bf16: two bytes for each value");
    run_tasks(executor, tasks_for(executor, out.size(), detail::block), [&](segment part) {
        detail::decode_bf16_in_turn(bytes.subspan(2 * part.begin, 2 * part.size()),
                                    out.subspan(part.begin, part.size()));
    });
}

}}}  // namespace rill::RILL_ABI::kernel
