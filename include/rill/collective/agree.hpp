#pragma once

#include <rill/collective/detail/synchronise.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/topology/tree.hpp>

namespace rill { inline namespace RILL_ABI {

/// Returns when all ranks have called it with equal `options`, which describe how each has been configured.
///
/// Cost: 2 log2 P rounds of frames without content. Errors: `mismatch` on all ranks if one has other options; it names
/// the odd rank and how its options differ.
template <class Group>
receipt agree(Group& group, const call_options& options) {
    return group.run({.kind = operation::handshake, .options = options}, [&](auto& call) {
        auto& state = group.template workspace<detail::empty_state<typename Group::transport_type>>();
        return detail::synchronise(call, topology::tree{}.all_reduce(group.size(), group.rank()), state);
    });
}

}}  // namespace rill::RILL_ABI
