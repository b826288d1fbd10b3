#pragma once

#include <rill/concept/tensor.hpp>

#if __has_include(<xtensor/containers/xadapt.hpp>)  // from 0.26 on
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xexpression.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xexpression.hpp>
#include <xtensor/xnoalias.hpp>
#endif

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

namespace detail {

template <class X>
concept XtensorExpression = xt::is_xexpression<X>::value && requires { typename X::value_type; };

template <class X>
concept XtensorWithMemory = XtensorExpression<X> && requires(const X& x) {
    x.data() + x.data_offset();
    x.strides();
};

/// The order in which an expression's elements are counted.
template <class X>
inline constexpr xt::layout_type xtensor_order =
    X::static_layout == xt::layout_type::column_major ? xt::layout_type::column_major : xt::layout_type::row_major;

/// Whether a shape type has exactly one index, known at compile time.
template <class Shape>
inline constexpr bool is_one_index = false;
template <class Shape>
    requires requires { std::tuple_size<Shape>::value; }
inline constexpr bool is_one_index<Shape> = std::tuple_size<Shape>::value == 1;

/// Whether the elements lie one after the other in counting order. The stride of an axis of extent 1 has no meaning.
template <class X>
bool xtensor_is_contiguous(const X& x) {
    const std::size_t indices = x.dimension();
    std::ptrdiff_t due = 1;
    for (std::size_t i = 0; i < indices; ++i) {
        const std::size_t axis = xtensor_order<X> == xt::layout_type::row_major ? indices - 1 - i : i;
        const auto extent = static_cast<std::ptrdiff_t>(x.shape()[axis]);
        if (extent != 1 && static_cast<std::ptrdiff_t>(x.strides()[axis]) != due) return x.size() == 0;
        due *= extent;
    }
    return true;
}

/// Returns the memory of an expression: exact with one or two indices; with more, everything from the lowest to the
/// highest address.
template <class X>
memory_layout xtensor_layout(const X& x) {
    constexpr std::ptrdiff_t bytes = sizeof(typename X::value_type);
    const auto* first = x.data() + static_cast<std::ptrdiff_t>(x.data_offset());
    if (x.size() == 0 || xtensor_is_contiguous(x)) return memory_layout::of(std::span(first, x.size()));
    const auto step = [&](std::size_t axis) { return static_cast<std::ptrdiff_t>(x.strides()[axis]) * bytes; };
    const auto extent = [&](std::size_t axis) { return static_cast<std::size_t>(x.shape()[axis]); };
    if (x.dimension() == 1) return {first, bytes, step(0), extent(0)};
    if (x.dimension() == 2) return {first, bytes, step(1), extent(1), step(0), extent(0)};
    std::ptrdiff_t below = 0, above = 0;
    for (std::size_t axis = 0; axis < x.dimension(); ++axis) {
        const std::ptrdiff_t reach = step(axis) / bytes * (static_cast<std::ptrdiff_t>(extent(axis)) - 1);
        (reach < 0 ? below : above) += reach;
    }
    return {first + below, bytes, bytes, static_cast<std::size_t>(above - below) + 1};
}

}  // namespace detail

/// Makes xtensor's containers, adaptors, views and expressions tensors.
///
/// Coordinates are numbered as the type stores them: the first index varies fastest if the static layout is
/// `column_major`, otherwise the last one. Objects that lie in memory in this order without gaps are used in place;
/// everything else is copied element by element or evaluated. An operation in the background evaluates a temporary when
/// it starts.
template <detail::XtensorExpression X>
struct tensor_traits<X> {
    using element_type = std::remove_cv_t<typename X::value_type>;

    static constexpr xt::layout_type layout = detail::xtensor_order<X>;
    static constexpr coordinate_order order = detail::is_one_index<typename X::shape_type> ? coordinate_order::any
                                              : layout == xt::layout_type::column_major ? coordinate_order::column_major
                                                                                        : coordinate_order::row_major;

    static constexpr bool is_view = !requires { requires std::same_as<X, typename X::temporary_type>; };

    static std::size_t size(const X& x) { return x.size(); }

    static bool is_contiguous(const X& x)
        requires detail::XtensorWithMemory<X>
    {
        return detail::xtensor_is_contiguous(x);
    }
    static memory_layout layout_in_memory(const X& x)
        requires detail::XtensorWithMemory<X>
    {
        return detail::xtensor_layout(x);
    }
    /// Returns the elements in place; they are `const` if those of `x.data()` are.
    template <class Y>
        requires detail::XtensorWithMemory<X>
    static auto view(Y& x) {
        auto* const first = x.data() + static_cast<std::ptrdiff_t>(x.data_offset());
        return std::span<std::remove_pointer_t<decltype(x.data())>>(first, x.size());
    }

    static void read(const X& x, std::span<element_type> to) {
        auto target = xt::adapt<layout>(to.data(), to.size(), xt::no_ownership(), x.shape());
        xt::noalias(target) = x;
    }
    static void write(std::span<const element_type> from, X& x)
        requires requires { *x.template begin<layout>() = element_type{}; }
    {
        xt::noalias(x) = xt::adapt<layout>(from.data(), from.size(), xt::no_ownership(), x.shape());
    }
};

}}  // namespace rill::RILL_ABI
