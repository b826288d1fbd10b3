// Value codings: arbitrary bytes through the decoders, compared with naive ones; and arbitrary values through the
// encoders and back, within the error that each coding promises.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/stream/detail/payload.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

namespace {

using namespace rill;

constexpr value_coding codings[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd2, value_coding::qsgd4,
                                    value_coding::qsgd8};
constexpr std::uint32_t usual_buckets[] = {1, 2, 3, 7, 16, 64, 100, 1024};
constexpr std::size_t most_values = 4096;

unsigned bits_of(const coding& codes) { return static_cast<unsigned>(qsgd_bits(codes.values)); }

/// Calls visit(first value, values, codes of the bucket) for each bucket of `count` values in order.
template <class T, class Bytes, class Visit>
void for_each_bucket(Bytes bytes, std::size_t count, const coding& codes, Visit visit) {
    Bytes rest = bytes.subspan(kernel::quantize_buckets(count, codes.bucket) * sizeof(T));
    for (std::size_t first = 0; first < count; first += codes.bucket) {
        const std::size_t entries = std::min<std::size_t>(codes.bucket, count - first);
        const std::size_t size = (entries * bits_of(codes) + 7) / 8;
        visit(first, entries, rest.first(size));
        rest = rest.subspan(size);
    }
    RILL_FUZZ_REQUIRE(rest.empty(), "as many bytes as the buckets need");
}

/// Where the code of entry `i` of a bucket is: the byte, and the lowest of its bits.
struct place {
    std::size_t byte;
    unsigned shift;
};
place place_of(std::size_t i, std::size_t bytes, const coding& codes) {
    return {i % bytes, static_cast<unsigned>(i / bytes) * bits_of(codes)};
}

template <class T>
T scale_of(byte_view bytes, std::size_t bucket) {
    T scale;
    std::memcpy(&scale, bytes.data() + bucket * sizeof(T), sizeof(T));
    return scale;
}

template <class T>
using values_of = std::optional<std::vector<T>>;

/// A naive decoder: one value at a time.
template <class T>
values_of<T> naive(byte_view bytes, std::size_t count, const coding& codes) {
    std::vector<T> values(count);
    if (codes.values == value_coding::raw) {
        if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
    if (codes.values == value_coding::bf16) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto half =
                std::to_integer<std::uint32_t>(bytes[2 * i]) | std::to_integer<std::uint32_t>(bytes[2 * i + 1]) << 8;
            values[i] = static_cast<T>(std::bit_cast<float>(half << 16));
        }
        return values;
    }
    const int levels = (1 << (bits_of(codes) - 1)) - 1;
    for (std::size_t b = 0; b < kernel::quantize_buckets(count, codes.bucket); ++b)
        if (const T scale = scale_of<T>(bytes, b); !std::isfinite(scale) || scale < 0) return std::nullopt;
    for_each_bucket<T>(bytes, count, codes, [&](std::size_t first, std::size_t entries, byte_view packed) {
        const T scale = scale_of<T>(bytes, first / codes.bucket);
        for (std::size_t i = 0; i < entries; ++i) {
            const place at = place_of(i, packed.size(), codes);
            const int code = std::to_integer<int>(packed[at.byte]) >> at.shift & ((1 << bits_of(codes)) - 1);
            values[first + i] =
                static_cast<T>(std::min(code, 2 * levels) - levels) * (T{1} / static_cast<T>(levels)) * scale;
        }
    });
    return values;
}

template <class T>
values_of<T> decoded(byte_view bytes, std::size_t count, const coding& codes) {
    const wire::header head{.element = element_type_of<T>, .codes = codes, .count = count};
    aligned_vector<T> room;
    std::span<const T> values;
    try {
        const rill::fuzz::allocation_budget at_most(count * sizeof(T) + rill::fuzz::error_texts);
        room.resize(count);
        values = detail::decode_values(head, bytes, span_of(room), serial{});
    } catch (const protocol_error&) {
        return std::nullopt;
    }
    return values_of<T>(std::in_place, values.begin(), values.end());
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Makes a NaN quiet: a conversion from float to double does so, and a compiler may choose when.
template <class T>
bool same_values(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) {
        return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    });
}

template <class T>
void check_decoder(rill::fuzz::input in, const coding& codes) {
    const std::size_t wanted = in.number<std::uint16_t>() % most_values;
    const byte_view rest = in.rest();
    std::size_t count = wanted;
    while (detail::value_length<T>(codes, count) > rest.size()) count /= 2;
    const buffer bytes = rill::fuzz::copy_of(rest.first(detail::value_length<T>(codes, count)));
    const auto fast = decoded<T>(bytes, count, codes);
    const auto slow = naive<T>(bytes, count, codes);
    RILL_FUZZ_REQUIRE(fast.has_value() == slow.has_value(), "both decoders accept, or none");
    if (!fast) return;
    RILL_FUZZ_REQUIRE(codes.values == value_coding::raw ? same_bits(*fast, *slow) : same_values(*fast, *slow),
                      "the same values");
    if (!is_qsgd(codes.values)) return;
    const std::span<const T> scales(reinterpret_cast<const T*>(bytes.data()),
                                    kernel::quantize_buckets(count, codes.bucket));
    for (std::size_t i = 0; i < count; ++i)
        RILL_FUZZ_REQUIRE(std::abs((*fast)[i]) <= scales[i / codes.bucket], "no value beyond its scale");
    std::vector<T> sum(count, T{1}), due(count);
    kernel::dequantize_fold(byte_view(bytes).subspan(scales.size_bytes()), scales, bits_of(codes), codes.bucket,
                            std::span<T>(sum), [](T a, T b) { return a + b; });
    for (std::size_t i = 0; i < count; ++i) due[i] = T{1} + (*fast)[i];
    RILL_FUZZ_REQUIRE(same_bits(sum, due), "decode and fold in one");
}

/// The nearest bfloat16 number; a tie goes to the even one.
std::uint16_t nearest_half(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto below = static_cast<std::uint16_t>(bits >> 16);
    const auto value = [](std::uint32_t half) {
        return half == 0x7F80U ? 0x1p128 : static_cast<double>(std::bit_cast<float>(half << 16));
    };
    const std::uint32_t magnitude = below & 0x7FFFU;
    const double at = std::abs(static_cast<double>(x));
    const double down = at - value(magnitude), up = value(magnitude + 1) - at;
    const bool is_up = up < down || (up == down && magnitude % 2 != 0);
    return static_cast<std::uint16_t>(below + (is_up ? 1 : 0));
}

/// What `x` becomes when it is rounded to bfloat16.
template <class T>
float half_of(T x) {
    const auto narrow = static_cast<float>(x);
    return std::isfinite(narrow) ? std::bit_cast<float>(std::uint32_t{nearest_half(narrow)} << 16) : narrow;
}

template <class T>
void require_same_halves(std::span<const T> values, byte_view bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, sizeof half);
        RILL_FUZZ_REQUIRE(half == nearest_half(static_cast<float>(values[i])), "the nearest bfloat16 number");
    }
}

/// A naive encoder: entry by entry, where the library's works on blocks.
template <class T>
void require_same_codes(std::span<const T> values, const coding& codes, random_key key, std::uint64_t first_index,
                        byte_view bytes) {
    const counter_rng random(key);
    buffer due(bytes.size(), std::byte{0});
    const std::size_t scales = kernel::quantize_buckets(values.size(), codes.bucket);
    std::copy_n(bytes.begin(), scales * sizeof(T), due.begin());
    for_each_bucket<T>(
        byte_span(due), values.size(), codes, [&](std::size_t first, std::size_t entries, byte_span packed) {
            T largest{};
            for (const T x : values.subspan(first, entries)) largest = std::max(largest, std::abs(x));
            RILL_FUZZ_REQUIRE(scale_of<T>(bytes, first / codes.bucket) == largest,
                              "the largest magnitude as the scale");
            const T divisor = largest > 0 ? largest : T{1};
            for (std::size_t i = 0; i < entries; ++i) {
                const T x = values[first + i];
                const std::uint32_t draw = random.bits(first_index + first + i);
                const std::uint32_t code = bits_of(codes) == 2   ? kernel::detail::code_of<2>(x, divisor, draw)
                                           : bits_of(codes) == 4 ? kernel::detail::code_of<4>(x, divisor, draw)
                                                                 : kernel::detail::code_of<8>(x, divisor, draw);
                const place at = place_of(i, packed.size(), codes);
                packed[at.byte] |= static_cast<std::byte>(code << at.shift);
            }
        });
    RILL_FUZZ_REQUIRE(std::equal(due.begin(), due.end(), bytes.begin(), bytes.end()), "the bytes of a naive encoder");
}

template <class T>
void require_near(std::span<const T> sent, const std::vector<T>& read, const coding& codes) {
    RILL_FUZZ_REQUIRE(sent.size() == read.size(), "as many values");
    const double levels = (1 << (bits_of(codes) - 1)) - 1;
    for (std::size_t first = 0; first < sent.size(); first += codes.bucket) {
        const auto bucket = sent.subspan(first, std::min<std::size_t>(codes.bucket, sent.size() - first));
        T largest{};
        for (const T x : bucket) largest = std::max(largest, std::abs(x));
        // One level, plus the error of its own rounding, which is larger for denormal numbers.
        const double level = static_cast<double>(largest) / levels * (1 + 1e-6) +
                             2 * static_cast<double>(std::numeric_limits<T>::denorm_min());
        for (std::size_t i = 0; i < bucket.size(); ++i) {
            const T x = bucket[i], y = read[first + i];
            RILL_FUZZ_REQUIRE(std::abs(static_cast<double>(x) / 2 - static_cast<double>(y) / 2) <= level / 2,
                              "an error of at most a level");
            RILL_FUZZ_REQUIRE(std::abs(x) != largest || x == y, "the largest magnitude is exact");
            RILL_FUZZ_REQUIRE(x != 0 || y == 0, "zero is exact");
        }
    }
}

template <class T>
void check_encoder(rill::fuzz::input in, const coding& codes) {
    const random_key key{in.number<std::uint64_t>()};
    const std::uint64_t first = in.flag() ? in.number<std::uint64_t>() >> 1 : in.number<std::uint8_t>();
    const byte_view given = in.rest();
    aligned_vector<T> values(std::min(given.size() / sizeof(T), most_values));
    if (!values.empty()) std::memcpy(values.data(), given.data(), values.size() * sizeof(T));

    const stream_view<T, std::uint64_t> view({first, first + values.size()}, std::span<const T>(values));
    const bool fits = std::all_of(values.begin(), values.end(), [&](T x) {
        return std::isfinite(codes.values == value_coding::bf16 ? static_cast<T>(half_of(x)) : x);
    });
    buffer bytes(detail::value_length<T>(codes, values.size()));
    try {
        if (!codes.is_lossless()) detail::require_roundable(view, codes, serial{});
        RILL_FUZZ_REQUIRE(fits || codes.is_lossless(), "what cannot be rounded is refused");
        detail::encode_values(view.values(), codes, key, first, byte_span(bytes), serial{});
    } catch (const invalid_value&) {
        RILL_FUZZ_REQUIRE(!fits, "what can be rounded is taken");
        return;
    }
    const auto read = decoded<T>(bytes, values.size(), codes);
    RILL_FUZZ_REQUIRE(read.has_value(), "what was written is read");
    if (codes.values == value_coding::raw)
        RILL_FUZZ_REQUIRE(same_bits(*read, std::vector<T>(values.begin(), values.end())), "the same bits");
    else if (codes.values == value_coding::bf16)
        require_same_halves(view.values(), bytes);
    else {
        require_same_codes(view.values(), codes, key, first, bytes);
        require_near(view.values(), *read, codes);
    }
}

template <class T>
void check(rill::fuzz::input in, const coding& codes, bool decodes) {
    if (decodes)
        check_decoder<T>(in, codes);
    else
        check_encoder<T>(in, codes);
}

}  // namespace

RILL_FUZZ_TARGET(values)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const bool decodes = in.flag(), is_double = in.flag();
    coding codes{.values = codings[in.below(5)]};
    codes.bucket = in.flag() ? std::max(in.number<std::uint32_t>(), 1U) : usual_buckets[in.below(8)];
    if (is_double)
        check<double>(in, codes, decodes);
    else
        check<float>(in, codes, decodes);
    return 0;
}
