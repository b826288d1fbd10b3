#pragma once

#include <rill/concept/value_coding.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// The signs of values, one bit each: decoding gives +1, or -1 for negative values. Zeros of both signs give +1. For
/// votes (`aggregate::sign_of_sum`); without magnitudes there is no error feedback. Models `ValueCoding`.
struct signs {
    static constexpr const char* name = "signs";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;

    static constexpr std::size_t size(std::size_t count, std::size_t) { return count / 8 + (count % 8 != 0 ? 1U : 0U); }

    template <std::floating_point T>
    static void encode(std::span<const T> values, random_key, std::uint64_t, byte_span out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            unsigned bits = 0;
            const auto eight = values.subspan(8 * i, values.size() - 8 * i < 8 ? values.size() - 8 * i : 8);
            for (std::size_t j = 0; j < eight.size(); ++j) bits |= static_cast<unsigned>(eight[j] < 0) << j;
            out[i] = static_cast<std::byte>(bits);
        }
    }
    template <std::floating_point T>
    static void decode(byte_view bytes, std::span<T> values) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = (std::to_integer<unsigned>(bytes[i / 8]) >> i % 8 & 1U) != 0 ? T{-1} : T{1};
    }

    friend constexpr bool operator==(signs, signs) = default;
};
static_assert(ValueCoding<signs>);

}}}  // namespace rill::RILL_ABI::compress
