#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// A codec of models that are mixed by their differences: it keeps a replica of this rank's model, which is what all
/// others know of it, and the sum of its neighbours' replicas with the weights of the mixing.
///
/// In each round `begin(number)` comes first. `encode(model)` gives what is sent of the difference between model and
/// replica. `collect(sent, weight, is_own)` is handed, by rank, what each rank of the round has sent as its receivers
/// decode it, this rank's own too; nothing counts before `apply(model)`, which moves replica, sum and model. After
/// `rollback()` all is as before the round.
/// `room()` is memory in which frames are decoded. Codings, dimension and `fingerprint` are those of `Compressor`.
template <class C, class T>
concept DifferenceCompressor =
    Element<T> && IndexType<typename C::index_type> && C::keeps_replica &&
    requires(C& codec, const C& constant, std::span<const T> model, std::span<T> moved, std::uint64_t number) {
        { codec.begin(number) };
        { constant.dimension() };
        { codec.coded_dimension() };
        { constant.codings() };
        { constant.fingerprint() };
        { codec.collect(codec.encode(model), 1.0, true) };
        { codec.apply(moved) };
        { codec.rollback() };
        { codec.room() };
    };

}}  // namespace rill::RILL_ABI
