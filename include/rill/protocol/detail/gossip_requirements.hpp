#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `gossip`, so that its messages come before all others.
template <class Mix>
struct gossip_requirements {
    static_assert(
        Mixing<Mix>,
        "rill::gossip: the second argument does not model Mixing; use topology::ring_neighbours, exponential, "
        "rotating, random_matching, metropolis or directed (see rill/concept/mixing.hpp)");
};

/// Checks a codec whose entries of a model of `T` are mixed by `Mix`.
template <class Mix, class Codec, class T>
consteval bool require_gossip_codec() {
    if constexpr (DifferenceCompressor<Codec, T>) {
        static_assert(
            Mix::keeps_neighbours,
            "rill::gossip: compress::difference keeps the sum of its neighbours' replicas, and the mixing "
            "changes neighbours; use one that says keeps_neighbours: topology::ring_neighbours or metropolis");
        static_assert(Mix::is_doubly_stochastic,
                      "rill::gossip: the mixing is not doubly stochastic, so that push-sum divides each model by one "
                      "weight, and compress::difference sends no whole models; use ring_neighbours or metropolis");
    } else {
        static_assert(
            AlikeCompressor<Codec, T>,
            "rill::gossip: the codec chooses other entries on each rank, which would not keep the mean of all "
            "models; put it into compress::difference{...}, or use compress::random_mask, bound to the "
            "model's element type");
        if constexpr (AlikeCompressor<Codec, T>) {
            static_assert(!Codec::possible_codings.rounds,
                          "rill::gossip: the codec rounds values, which would not keep the mean of all models; use raw "
                          "values, or put it into compress::difference{...}");
            static_assert(
                Mix::is_doubly_stochastic || Codec::is_lossless,
                "rill::gossip: the mixing is not doubly stochastic, so that push-sum divides each model by one "
                "weight, and the codec mixes only some of the entries; mix without a codec, or use a mixing "
                "that says is_doubly_stochastic");
        }
    }
    return true;
}

}}}  // namespace rill::RILL_ABI::detail
