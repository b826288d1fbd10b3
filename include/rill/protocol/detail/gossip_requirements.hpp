#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/detail/require_compressor.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `gossip`, so that its messages come before all others.
template <class Mix>
struct gossip_requirements {
    static_assert(
        Mixing<Mix>,
        "rill::gossip: the second argument does not model Mixing; use topology::ring_neighbours, exponential, "
        "rotating, random_matching, bandwidth_matching, metropolis or directed (see rill/concept/mixing.hpp)");
};

template <class Model>
consteval bool require_gossip_model() {
    static_assert(OutputTensor<Model>,
                  "rill::gossip: the model is no tensor that can be written; pass a std::vector<float>, say");
    if constexpr (OutputTensor<Model>)
        static_assert(std::floating_point<tensor_element<Model>>,
                      "rill::gossip: models of integers have no mean; use float or double");
    return true;
}

/// Checks what `debias` reads and writes.
template <class Model, class Out>
consteval bool require_estimate() {
    require_gossip_model<Out>();
    static_assert(Tensor<Model>, "rill::gossip: the model of which an estimate is made is no tensor");
    constexpr bool one_element = std::same_as<tensor_element<Model>, tensor_element<Out>>;
    static_assert(one_element,
                  "rill::gossip: the estimate has other elements than the model; make it of the model's, nothing is "
                  "converted on the way");
    return one_element;
}

/// Checks a codec that chooses the entries of a model of `T` that are mixed. `Argument`: its type as it was passed.
template <class Argument, class T>
consteval bool require_alike_codec() {
    if constexpr (require_compressor<Argument, T>()) {
        using Codec = std::remove_reference_t<Argument>;
        static_assert(
            AlikeCompressor<Codec, T>,
            "rill::gossip: the codec does not choose the same entries on all ranks, so that the mean of all models "
            "would not stay; use compress::random_mask, or, without a coordinator, put the codec into "
            "compress::difference{...}");
        if constexpr (AlikeCompressor<Codec, T>) {
            static_assert(!Codec::possible_codings.rounds,
                          "rill::gossip: the codec rounds values, which would not keep the mean of all models; use raw "
                          "values, or, without a coordinator, put the codec into compress::difference{...}");
            return true;
        }
    }
    return false;
}

/// Checks a codec of models of `T` that are mixed by `Mix`. `Argument`: its type as it was passed.
template <class Mix, class Argument, class T>
consteval bool require_gossip_codec() {
    using Codec = std::remove_reference_t<Argument>;
    if constexpr (DifferenceCompressor<std::remove_const_t<Codec>, T>) {
        constexpr bool is_kept = std::is_lvalue_reference_v<Argument> && !std::is_const_v<Codec>;
        static_assert(is_kept,
                      "rill::gossip: compress::difference is a temporary or const, and its replicas move with each "
                      "round; keep what bind(dimension) returns in a variable for all rounds");
        static_assert(
            Mix::keeps_neighbours,
            "rill::gossip: compress::difference keeps the sum of its neighbours' replicas, and the mixing "
            "changes neighbours; use one that says keeps_neighbours: topology::ring_neighbours or metropolis");
        static_assert(Mix::is_doubly_stochastic,
                      "rill::gossip: the mixing is not doubly stochastic, so that push-sum divides each model by one "
                      "weight, and compress::difference sends no whole models; use ring_neighbours or metropolis");
        return is_kept && Mix::keeps_neighbours && Mix::is_doubly_stochastic;
    } else if constexpr (require_alike_codec<Argument, T>()) {
        static_assert(Mix::is_doubly_stochastic || Codec::is_lossless,
                      "rill::gossip: the mixing is not doubly stochastic, so that push-sum divides each model by one "
                      "weight, and the codec mixes only some of the entries; mix without a codec, or use a mixing "
                      "that says is_doubly_stochastic");
        return Mix::is_doubly_stochastic || Codec::is_lossless;
    }
    return false;
}

/// In the place of the mixing, a mixing that a coordinator asks.
template <class Mix>
struct with_coordinator {};

/// The base of a gossip with a coordinator, so that its messages come before all others.
template <class Net, class Mix>
struct coordinated_requirements {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::gossip: the transport does not model ConcurrentTransport, so rank 0 cannot coordinate while it "
        "computes; use in_process, simulated, tcp or mpi, or leave the coordinator away");
    static_assert(Mixing<Mix>,
                  "rill::gossip: the second argument does not model Mixing; use topology::bandwidth_matching or "
                  "random_matching (see rill/concept/mixing.hpp)");
    static_assert(Mix::is_doubly_stochastic && Mix::is_symmetric,
                  "rill::gossip: the mixing is not one of pairs that exchange, so a coordinator cannot commit both or "
                  "none; use topology::bandwidth_matching or random_matching, or leave the coordinator away");
};

}}}  // namespace rill::RILL_ABI::detail
