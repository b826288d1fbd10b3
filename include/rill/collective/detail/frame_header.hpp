#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The header fields that all frames of the current call share. A call without data sends empty frames of int32.
template <class Net>
wire::header frame_header_of(const exchange<Net>& call) {
    const call_signature& signature = call.signature();
    const wire::header head{
        .element = signature.element == element_type::none ? element_type::int32 : signature.element,
        .index_bytes = signature.index_bytes == 0 ? std::uint8_t{4} : signature.index_bytes,
        .call = signature.hash(),
        .dimension = signature.dimension};
    return call.of().stamped(head, signature.kind, signature.number);
}

}}}  // namespace rill::RILL_ABI::detail
