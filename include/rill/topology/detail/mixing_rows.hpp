// What several mixings write alike.
#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>

#include <algorithm>

namespace rill { inline namespace RILL_ABI { namespace topology::detail {

constexpr int checked_size(int size) {
    RILL_EXPECTS(size >= 1, "topology: a mixing has at least one rank");
    return size;
}

/// A row of a rank that mixes with nobody.
RILL_CONSTEXPR_VECTORS void clear(mixing_row& row) {
    row.own_weight = 1;
    row.senders.clear();
    row.receivers.clear();
}

/// Adds a rank that this one sends to and receives from.
RILL_CONSTEXPR_VECTORS void exchange_with(mixing_row& row, rank_t peer, double weight) {
    const auto at = std::lower_bound(row.receivers.begin(), row.receivers.end(), peer);
    row.senders.insert(row.senders.begin() + (at - row.receivers.begin()), {peer, weight});
    row.receivers.insert(at, peer);
}

/// One model arrives and one leaves, half and half.
RILL_CONSTEXPR_VECTORS void halve(mixing_row& row, rank_t sender, rank_t receiver) {
    row.own_weight = 1.0 / 2;
    row.senders.assign(1, {sender, 1.0 / 2});
    row.receivers.assign(1, receiver);
}

}}}  // namespace rill::RILL_ABI::topology::detail
