#pragma once

#include <rill/collective/detail/synchronise.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/topology/tree.hpp>

#include <exception>

namespace rill { inline namespace RILL_ABI {

/// Returns when all ranks have called it with equal `hashes`, of how each has been configured.
///
/// Cost: 2 log2 P rounds of frames without content. Errors: `mismatch` on all ranks if one has other options; it names
/// the odd rank and, by `names`, in what it differs. A rank that could not be configured passes what it has thrown as
/// `refused`: it throws that again, and all others get a `peer_failure` with its text.
template <class Group>
receipt agree(Group& group, const option_names& names, const option_hashes& hashes,
              const std::exception_ptr& refused = nullptr) {
    const auto body = [&](auto& call) {
        if (refused != nullptr) std::rethrow_exception(refused);
        return detail::synchronise(group, call, topology::tree{}.all_reduce(group.size(), group.rank()));
    };
    return group.run({.kind = operation::handshake, .options = names.with(hashes)}, body, names);
}

}}  // namespace rill::RILL_ABI
