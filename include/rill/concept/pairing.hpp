#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI {

/// The policy that says who may ask whom to average their models.
///
/// `asks(asker, other, size)`: whether `asker` may ask `other`, another of `size` ranks. A pure function. A rank that
/// may ask nobody is never busy, so that it is asked without being asked first whether it is free.
template <class P>
concept Pairing = Regular<P> && requires(const P& pairing, rank_t asker, rank_t other, int size) {
    { pairing.asks(asker, other, size) } -> std::same_as<bool>;
    { P::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
