#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/kernel/quantize.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The size of `count` coded values, in bytes.
[[gnu::noinline]] constexpr std::size_t value_length(const coding& codes, std::size_t element_bytes,
                                                     std::size_t count) {
    if (codes.values == value_coding::raw) return count * element_bytes;
    if (codes.values == value_coding::bf16) return count * 2;
    if (codes.values == value_coding::own) {
        RILL_EXPECTS(codes.own.does != nullptr, "value_coding::own: compress::own_values makes such codings");
        return codes.own.does->size(codes.own.self, count, element_bytes);
    }
    RILL_EXPECTS(is_qsgd(codes.values) && codes.bucket > 0,
                 "coding: qsgd codes values to 2, 4 or 8 bits, in buckets of at least one entry");
    return kernel::quantize_buckets(count, codes.bucket) * element_bytes +
           kernel::quantized_bytes(count, static_cast<unsigned>(qsgd_bits(codes.values)), codes.bucket);
}

}}}  // namespace rill::RILL_ABI::detail
