#pragma once

#include <rill/concept/tensor.hpp>

#include <Eigen/Core>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {

template <class Derived>
std::type_identity<Derived> eigen_type(const Eigen::DenseBase<Derived>&);

/// Whether a type is a `Ref` to const, which may have evaluated its argument into memory of its own.
template <class X>
constexpr bool is_eigen_const_ref = false;
template <class X, int options, class Stride>
constexpr bool is_eigen_const_ref<Eigen::Ref<const X, options, Stride>> = true;

/// A dense vector, matrix, array, map, block or expression of Eigen, or a class derived from one.
template <class X>
concept EigenDense = requires(const X& x) { eigen_type(x); };

}  // namespace detail

/// Makes Eigen's dense types tensors.
///
/// Coordinates are numbered as the type stores them: column by column, or row by row if it is `RowMajor` (a transposed
/// expression has the other order). Objects that lie in memory without gaps (vectors, matrices, maps, blocks of whole
/// columns) are used in place. Everything else is copied: a strided block element by element; an expression is
/// evaluated, a product without a temporary.
///
/// An operation in the background evaluates a temporary expression when it starts, and keeps a copy of a temporary map
/// or block. A block of a temporary matrix, `f().topRows(2)`, reads freed memory, because its type is that of any other
/// block. Store the matrix in a variable first.
template <detail::EigenDense X>
struct tensor_traits<X> {
    using element_type = typename X::Scalar;
    using dense = typename decltype(detail::eigen_type(std::declval<const X&>()))::type;
    using plain = typename X::PlainObject;

    static constexpr coordinate_order order = X::IsVectorAtCompileTime ? coordinate_order::any
                                              : X::IsRowMajor          ? coordinate_order::row_major
                                                                       : coordinate_order::column_major;
    static constexpr bool has_memory = (static_cast<unsigned>(X::Flags) & Eigen::DirectAccessBit) != 0;
    static constexpr bool is_writable = (static_cast<unsigned>(X::Flags) & Eigen::LvalueBit) != 0;

    static constexpr bool is_view = (has_memory || is_writable) && !detail::is_eigen_const_ref<dense> &&
                                    !std::derived_from<dense, Eigen::PlainObjectBase<dense>>;

    static std::size_t size(const X& x) { return static_cast<std::size_t>(x.size()); }

    static bool is_contiguous(const X& x)
        requires has_memory
    {
        return x.innerStride() == 1 && (x.outerSize() <= 1 || x.outerStride() == x.innerSize());
    }
    static memory_layout layout_in_memory(const X& x)
        requires has_memory
    {
        constexpr std::ptrdiff_t bytes = sizeof(element_type);
        if (is_contiguous(x)) return memory_layout::of(view(x));
        return {x.data(),
                bytes,
                x.innerStride() * bytes,
                static_cast<std::size_t>(x.innerSize()),
                x.outerStride() * bytes,
                static_cast<std::size_t>(x.outerSize())};
    }
    static std::span<const element_type> view(const X& x)
        requires has_memory
    {
        return {x.data(), size(x)};
    }
    static std::span<element_type> view(X& x)
        requires(has_memory && is_writable)
    {
        return {x.data(), size(x)};
    }

    static void read(const X& x, std::span<element_type> to) {
        Eigen::Map<plain> target(to.data(), x.rows(), x.cols());
        if constexpr (requires { target.noalias() = x; })
            target.noalias() = x;
        else
            target = x;
    }
    static void write(std::span<const element_type> from, X& x)
        requires is_writable
    {
        static_cast<dense&>(x) = Eigen::Map<const plain>(from.data(), x.rows(), x.cols());
    }
};

}}  // namespace rill::RILL_ABI
