#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/option_range.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Value codings: policies that say how the values of a frame are written. Each gives a `coding()`.

/// The value coding that writes values as they are. Lossless.
struct raw {
    static constexpr const char* name = "raw";
    static constexpr bool is_lossless = true;
    static constexpr bool is_unbiased = true;

    static constexpr rill::coding coding() { return {.values = value_coding::raw}; }
    friend constexpr bool operator==(raw, raw) = default;
};

/// The value coding bfloat16, the upper half of a float: 8 bits of exponent, 7 of mantissa, rounded to nearest even.
/// Two bytes per value.
struct bf16 {
    static constexpr const char* name = "bf16";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;

    static constexpr rill::coding coding() { return {.values = value_coding::bf16}; }
    friend constexpr bool operator==(bf16, bf16) = default;
};

/// The value coding QSGD: buckets of consecutive entries with one full-precision scale each, and `bits` bits per value
/// by stochastic rounding, which is unbiased. Source: Alistarh et al. 2017; SparCML, section 6.
struct qsgd {
    int bits = 4;                 ///< 2, 4 or 8
    std::uint32_t bucket = 1024;  ///< consecutive entries that share a scale

    static constexpr const char* name = "qsgd";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = true;

    constexpr rill::coding coding() const {
        rill::detail::require_option(bits == 2 || bits == 4 || bits == 8, "compress::qsgd: bits", bits, "2, 4 or 8");
        rill::detail::require_option(bucket > 0, "compress::qsgd: bucket", bucket, "at least 1");
        return {.values = static_cast<value_coding>(bits), .bucket = bucket};
    }
    friend constexpr bool operator==(const qsgd&, const qsgd&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
