#pragma once

#include "compositions.hpp"
#include "network.hpp"

#include <rill/cost/dense_messages.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/stream_messages.hpp>

#include <cstddef>

namespace plan {

/// The messages of one exchange, and the time that they take on a network; computing takes none.
template <class Shape, class Union, class Network>
rill::cost::prediction predict_exchange(const Shape& shape, const compressor& how, int ranks, std::size_t size,
                                        const Union& entries, const Network& network) {
    namespace cost = rill::cost;
    if (how.is_plain()) return cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(size), network);
    return cost::predict_all_reduce(shape, ranks, cost::stream_messages(size, entries, how.codings, !how.sparse),
                                    network);
}

/// The bytes of the longest chain of messages each of which waits for the one before.
template <class Shape, class Union>
double bytes_in_a_row(const Shape& shape, const compressor& how, int ranks, std::size_t size, const Union& entries) {
    constexpr double byte_per_ns = 1e9;
    const auto network = network_of(0, byte_per_ns);
    return predict_exchange(shape, how, ranks, size, entries, network).elapsed.seconds() * byte_per_ns;
}

}  // namespace plan
