// The compile-time messages about what is handed to a replica.
#pragma once

#include <rill/concept/tensor.hpp>
#include <rill/core/config.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Checks a model or a gradient that is handed to a replica whose elements are `T`.
template <class X, class T>
consteval bool require_replica_tensor() {
    constexpr bool is_tensor = Tensor<X>;
    static_assert(is_tensor,
                  "rill::Replica: the model or gradient is not a tensor; pass a contiguous range, or a tensor of a "
                  "library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp)");
    if constexpr (is_tensor)
        static_assert(std::same_as<tensor_element<X>, T>,
                      "rill::Replica: the model or gradient has other elements than the model that the replica was "
                      "made with; convert it, nothing is converted on the way");
    return true;
}

/// Whether `N` was meant as a group, which brings its transport along.
template <class N>
concept MeantAsGroup = requires { typename N::lane_type; };

// What deduction guides make of arguments that no replica takes: a class whose only content is a message.
struct wrong_arguments {};  ///< too few, too many, or of another kind
struct wrong_first {};      ///< a transport in place of a group, or a group in place of a transport

}}}  // namespace rill::RILL_ABI::detail
