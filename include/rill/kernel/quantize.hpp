// QSGD: stochastic quantisation to 2, 4 or 8 bits (Alistarh et al., 2017), with the max norm of a bucket as its scale.
//
// A code is level + levels, level in [-levels, levels], levels = 2^(bits-1) - 1. The codes of a bucket of n entries
// fill b = ceil(n * bits / 8) bytes plane by plane: entry p * b + j is in bits [p * bits, (p + 1) * bits) of byte j. So
// whole blocks are packed with one shift. Bits beyond the last entry are zero.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Default number of entries that share a scale (SparCML, section 6).
inline constexpr std::size_t quantize_bucket = 1024;

/// Whether values can be quantised to this many bits.
constexpr bool is_quantize_width(unsigned bits) { return bits == 2 || bits == 4 || bits == 8; }

/// The levels on each side of zero.
constexpr std::uint32_t quantize_levels(unsigned bits) { return (1U << (bits - 1)) - 1; }

/// The number of buckets, and of scales, of `count` entries.
constexpr std::size_t quantize_buckets(std::size_t count, std::size_t bucket) {
    return count / bucket + (count % bucket != 0 ? 1U : 0U);
}

/// The bytes of the codes of `count` entries. Each bucket is padded to a whole byte.
constexpr std::size_t quantized_bytes(std::size_t count, unsigned bits, std::size_t bucket) {
    const std::size_t per_byte = 8 / bits;
    const auto bytes = [&](std::size_t n) { return n / per_byte + (n % per_byte != 0 ? 1U : 0U); };
    return count / bucket * bytes(bucket) + bytes(count % bucket);
}

namespace detail {

/// Returns the code of `x`, |x| <= scale: the level in fixed point with 24 fractional bits, plus a random fraction,
/// truncated. The sums are integer sums, so that no compiler can fuse them with a product. x = ±scale and x = 0 give
/// their levels exactly.
template <unsigned Bits, std::floating_point T>
std::uint32_t code_of(T x, T scale, std::uint32_t random) {
    constexpr std::uint32_t levels = quantize_levels(Bits);
    constexpr auto unit = static_cast<float>(levels << 24);
    const auto fixed = static_cast<std::int32_t>(static_cast<float>(x / scale) * unit);
    return (static_cast<std::uint32_t>(fixed) + (levels << 24) + (random >> 8)) >> 24;
}

/// The value of a code, at most `scale` in magnitude.
template <unsigned Bits, std::floating_point T>
T value_of(std::uint32_t code, T scale) {
    constexpr auto levels = static_cast<std::int32_t>(quantize_levels(Bits));
    constexpr T step = T{1} / static_cast<T>(levels);
    static_assert(step * static_cast<T>(levels) == T{1}, "the largest entry of a bucket would not be exact");
    const auto offset = static_cast<std::int32_t>(code);
    const std::int32_t level = (offset < 2 * levels ? offset : 2 * levels) - levels;
    return static_cast<T>(level) * step * scale;
}

template <std::floating_point T>
T max_norm(std::span<const T> x, std::size_t first) {
    const magnitude_key<T> largest = largest_of(x);
    if (largest >= largest_magnitude<T>)
        throw invalid_value(
            text_of({"coordinate ", first + *find_non_finite(x), " is not finite and cannot be quantised"}));
    return std::bit_cast<T>(largest);
}

/// Writes 64 bytes of codes, of the entries from x[0], x[stride], x[2 * stride], … on. `low` and `high` are the words
/// of the random numbers' key; `first` is the index of x[0].
template <unsigned Bits, std::floating_point T>
void quantize_block(const T* x, std::size_t stride, T scale, std::uint32_t low, std::uint32_t high, std::uint32_t first,
                    std::byte* codes) {
    std::uint32_t packed[block];
    [&]<std::size_t... Plane>(std::index_sequence<Plane...>) {
        const std::uint32_t across = static_cast<std::uint32_t>(stride) * counter_step;
        std::uint32_t product = first * counter_step;
        for (std::size_t i = 0; i < block; ++i, product += counter_step) {
            const auto code = [&](std::uint32_t plane) {
                return code_of<Bits>(x[plane * stride + i], scale, counter_bits_of(low, high, product + plane * across))
                       << (plane * Bits);
            };
            packed[i] = (code(Plane) | ...);
        }
    }(std::make_index_sequence<8 / Bits>());
    for (std::size_t i = 0; i < block; ++i) codes[i] = static_cast<std::byte>(packed[i]);
}

/// Writes all codes of one bucket.
template <unsigned Bits, std::floating_point T>
void quantize_one(std::span<const T> x, T scale, const counter_rng& random, std::uint64_t first, byte_span codes) {
    constexpr std::size_t planes = 8 / Bits;
    const T divisor = scale > T{0} ? scale : T{1};
    const std::size_t stride = codes.size();
    std::size_t j = 0;
    if ((first >> 32) == ((first + x.size()) >> 32)) {  // else the key changes within the bucket
        const std::uint64_t key = random.word(first);
        const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
        for (; j + block <= stride && (planes - 1) * stride + j + block <= x.size(); j += block)
            quantize_block<Bits>(&x[j], stride, divisor, low, high, static_cast<std::uint32_t>(first + j), &codes[j]);
    }
    for (; j < stride; ++j) {
        std::uint32_t packed = 0;
        for (std::size_t p = 0, i = j; p < planes && i < x.size(); ++p, i += stride)
            packed |= code_of<Bits>(x[i], divisor, random.bits(first + i)) << (p * Bits);
        codes[j] = static_cast<std::byte>(packed);
    }
}

/// Calls put(to[i], value of the code in bits [shift, shift + Bits) of byte i) for `Count` bytes.
template <unsigned Bits, std::size_t Count, std::floating_point T, class Put>
void dequantize_bytes(const std::byte* __restrict codes, std::size_t shift, T scale, T* __restrict to, Put& put) {
    constexpr std::uint32_t mask = (1U << Bits) - 1;
    const auto value = [shift, scale](std::byte code) {
        const auto byte = std::to_integer<std::uint32_t>(code);
        return value_of<Bits>(Bits == 8 ? byte : (byte >> shift) & mask, scale);
    };
    if constexpr (fuses_products) {
        T values[Count];
        for (std::size_t i = 0; i < Count; ++i) values[i] = value(codes[i]);
        round_here(values);
        for (std::size_t i = 0; i < Count; ++i) put(to[i], values[i]);
    } else {
        for (std::size_t i = 0; i < Count; ++i) put(to[i], value(codes[i]));
    }
}

/// Calls put(out[i], value of code i) for one bucket. Not inlined: in some callers g++ -O2 takes the loops for rarely
/// run and vectorises none of them.
template <unsigned Bits, std::floating_point T, class Put>
[[gnu::noinline]] void dequantize_one(byte_view codes, T scale, std::span<T> out, Put& put) {
    const std::size_t stride = codes.size();
    for (std::size_t p = 0; p * stride < out.size(); ++p) {
        const auto plane = out.subspan(p * stride, std::min(stride, out.size() - p * stride));
        std::size_t j = 0;
        for (; j + block <= plane.size(); j += block)
            dequantize_bytes<Bits, block>(&codes[j], p * Bits, scale, &plane[j], put);
        for (; j < plane.size(); ++j) dequantize_bytes<Bits, 1>(&codes[j], p * Bits, scale, &plane[j], put);
    }
}

/// Calls visit(bucket number, first entry, entries, first byte, bytes) for every bucket.
template <class Visit>
void for_each_bucket(std::size_t count, unsigned bits, std::size_t bucket, Visit visit) {
    std::size_t byte = 0;
    for (std::size_t b = 0, first = 0; first < count; ++b) {
        const std::size_t entries = std::min(bucket, count - first);
        const std::size_t bytes = quantized_bytes(entries, bits, entries);
        visit(b, first, entries, byte, bytes);
        byte += bytes;
        first += entries;
    }
}

/// Calls visit with the width as a constant.
template <class Visit>
void with_width(unsigned bits, Visit visit) {
    switch (bits) {
        case 2: return visit.template operator()<2>();
        case 4: return visit.template operator()<4>();
        default: return visit.template operator()<8>();
    }
}

/// The position of the scales and codes of a segment of entries that begins a bucket.
struct bucket_range {
    std::size_t first_scale, scales, first_byte, bytes;

    constexpr bucket_range(segment entries, unsigned bits, std::size_t bucket)
        : first_scale(entries.begin / bucket),
          scales(quantize_buckets(entries.size(), bucket)),
          first_byte(quantized_bytes(entries.begin, bits, bucket)),
          bytes(quantized_bytes(entries.size(), bits, bucket)) {}
};

/// Quantises all buckets, one after the other.
template <std::floating_point T>
void quantize_in_turn(std::span<const T> x, unsigned width, std::size_t bucket, random_key key,
                      std::uint64_t first_index, std::span<T> scales, byte_span codes) {
    const counter_rng random(key);
    with_width(width, [&]<unsigned Bits>() {
        for_each_bucket(x.size(), Bits, bucket, [&](auto b, auto first, auto entries, auto byte, auto bytes) {
            const auto part = x.subspan(first, entries);
            const std::uint64_t index = first_index + first;
            scales[b] = max_norm(part, static_cast<std::size_t>(index));
            quantize_one<Bits>(part, scales[b], random, index, codes.subspan(byte, bytes));
        });
    });
}

template <std::floating_point T, class Put>
void dequantize_in_turn(byte_view codes, std::span<const T> scales, unsigned width, std::size_t bucket,
                        std::span<T> out, Put& put) {
    with_width(width, [&]<unsigned Bits>() {
        for_each_bucket(out.size(), Bits, bucket, [&](auto b, auto first, auto entries, auto byte, auto bytes) {
            dequantize_one<Bits>(codes.subspan(byte, bytes), scales[b], out.subspan(first, entries), put);
        });
    });
}

template <std::floating_point T, Executor Exec, class Put>
void dequantize_each(byte_view codes, std::span<const T> scales, unsigned width, std::size_t bucket, std::span<T> out,
                     const Exec& executor, Put put) {
    RILL_EXPECTS(is_quantize_width(width) && bucket > 0, "dequantize: 2, 4 or 8 bits in buckets of at least one entry");
    RILL_EXPECTS(scales.size() == quantize_buckets(out.size(), bucket), "dequantize: one scale for each bucket");
    RILL_EXPECTS(codes.size() == quantized_bytes(out.size(), width, bucket), "dequantize: the codes have another size");
    run_tasks(executor, tasks_for(executor, out.size(), bucket), [&](segment part) {
        const bucket_range at(part, width, bucket);
        dequantize_in_turn(codes.subspan(at.first_byte, at.bytes), scales.subspan(at.first_scale, at.scales), width,
                           bucket, out.subspan(part.begin, part.size()), put);
    });
}

}  // namespace detail

/// Quantises `x` without bias: the expected result of `dequantize` is `x` (up to 2^-24 of a level, the resolution of
/// the random numbers).
///
/// `scales` holds `quantize_buckets(n, bucket)`, `codes` `quantized_bytes(n, bits, bucket)`. An entry errs by less than
/// scale / levels; zero and the largest magnitude of each bucket are exact. `first_index` is the global index of x[0]:
/// entry j uses the random number (key, first_index + j), and the bytes are the same for every compiler and instruction
/// set. Throws `invalid_value` naming the coordinate (its global index) that is infinite or NaN; `scales` and `codes`
/// are then unspecified.
template <std::floating_point T, Executor Exec = serial>
void quantize(std::span<const T> x, unsigned bits, std::size_t bucket, random_key key, std::uint64_t first_index,
              std::span<T> scales, byte_span codes, const Exec& executor = {}) {
    RILL_EXPECTS(is_quantize_width(bits) && bucket > 0, "quantize: 2, 4 or 8 bits in buckets of at least one entry");
    RILL_EXPECTS(scales.size() == quantize_buckets(x.size(), bucket), "quantize: one scale for each bucket");
    RILL_EXPECTS(codes.size() == quantized_bytes(x.size(), bits, bucket), "quantize: the codes have another size");
    run_tasks(executor, tasks_for(executor, x.size(), bucket), [&](segment part) {
        const detail::bucket_range at(part, bits, bucket);
        detail::quantize_in_turn(x.subspan(part.begin, part.size()), bits, bucket, key, first_index + part.begin,
                                 scales.subspan(at.first_scale, at.scales), codes.subspan(at.first_byte, at.bytes));
    });
}

/// out[i] = fold(out[i], value of entry i). Any codes are valid: the one that `quantize` never writes counts as the
/// highest level. The value is rounded before it is folded, so that the bits do not depend on the compiler.
template <std::floating_point T, class Fold, Executor Exec = serial>
void dequantize_fold(byte_view codes, std::span<const T> scales, unsigned bits, std::size_t bucket, std::span<T> out,
                     Fold&& fold, const Exec& executor = {}) {
    detail::dequantize_each(codes, scales, bits, bucket, out, executor, [&](T& to, T value) { to = fold(to, value); });
}

/// out[i] = the value of entry i.
template <std::floating_point T, Executor Exec = serial>
void dequantize(byte_view codes, std::span<const T> scales, unsigned bits, std::size_t bucket, std::span<T> out,
                const Exec& executor = {}) {
    detail::dequantize_each(codes, scales, bits, bucket, out, executor, [](T& to, T value) { to = value; });
}

/// Throws `protocol_error` naming the first bucket whose scale is negative, infinite or NaN.
template <std::floating_point T>
void check_scales(std::span<const T> scales) {
    for (std::size_t b = 0; b < scales.size(); ++b)
        if (!(scales[b] >= T{0}) || magnitude(scales[b]) >= largest_magnitude<T>)
            throw protocol_error(text_of({"the scale of bucket ", b, " is negative or not finite"}));
}

}}}  // namespace rill::RILL_ABI::kernel
