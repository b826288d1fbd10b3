#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What all frames of the call under way have in common. A call without data travels as empty frames of int32.
template <class Net>
wire::header frame_header_of(const exchange<Net>& call) {
    const call_signature& signature = call.signature();
    return {.kind = signature.kind,
            .element = signature.element == element_type::none ? element_type::int32 : signature.element,
            .index_bytes = signature.index_bytes == 0 ? std::uint8_t{4} : signature.index_bytes,
            .context = call.context(),
            .number = signature.number,
            .call = signature.hash(),
            .dimension = signature.dimension};
}

}}}  // namespace rill::RILL_ABI::detail
