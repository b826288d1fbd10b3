#pragma once

#include <rill/core/detail/elements.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// How the coordinates of a tensor are numbered: `row_major`: the last index varies fastest; `column_major`: the first
/// index varies fastest; `any`: there is one index, so both are the same.
enum class coordinate_order : unsigned char { any, row_major, column_major };

/// Where elements lie in memory: `runs` runs of `length` elements. Distances are in bytes.
struct memory_layout {
    const void* first = nullptr;
    std::ptrdiff_t element_bytes = 1;
    std::ptrdiff_t step = 1;  ///< from one element of a run to the next
    std::size_t length = 0;
    std::ptrdiff_t stride = 0;  ///< from one run to the next
    std::size_t runs = 1;

    template <class T>
    static memory_layout of(std::span<T> elements) {
        return {elements.data(), sizeof(T), sizeof(T), elements.size()};
    }
    bool is_contiguous() const { return runs == 1 && (step == element_bytes || length <= 1); }

    friend bool operator==(const memory_layout&, const memory_layout&) = default;
};

namespace detail {

template <class X>
concept ContiguousRange = requires(X& x) { std::span(x); };

struct no_tensor {};

template <class X>
struct contiguous_range {
    using element_type = typename decltype(std::span(std::declval<X&>()))::value_type;
    static std::size_t size(const X& x) { return std::span(x).size(); }
    static auto view(X& x) { return std::span<typename decltype(std::span(x))::element_type>(x); }
    static auto view(const X& x) { return std::span<typename decltype(std::span(x))::element_type>(x); }
    static constexpr bool is_view = std::ranges::enable_borrowed_range<X>;
};

}  // namespace detail

/// How rill reads and writes the elements of a type. This is the customisation point for tensors of other libraries and
/// for a user's own. Contiguous ranges need no specialisation; other types specialise this template for their type `X`,
/// without `const` or reference, with these members:
///
/// - `element_type`, and `size(x)`, the number of elements. An optional `order` says how coordinates are numbered
///   (default: `any`).
/// - `view(x)`: the elements as `std::span`, if they are contiguous in memory. A span of `const` elements cannot be an
///   output. If this depends on the object, `is_contiguous(x)` says so, and `view` is called only if it returns true.
/// - `read(x, span)` copies the elements out (or evaluates an expression), `write(span, x)` copies them in. They are
///   used where there is no view, and cost a pass over the elements and N elements of the group's memory. A type that
///   has neither `write` nor a view of elements that are not `const` is an input only.
/// - `layout_in_memory(x)`: a `memory_layout`, for types whose elements lie in memory although `view` cannot always be
///   called. Collectives use it to find out that input and output overlap. A type with neither this nor a view is taken
///   for an expression, which has no memory.
/// - `is_view` (default: false): a copy refers to the same elements, which outlive it. A temporary output must be of
///   such a type. So must a temporary input of an operation in the background, unless its type has no `view`: then the
///   start of the operation reads it.
///
/// `x` is passed as `X&` or `const X&`, as the caller has it.
template <class X>
struct tensor_traits : std::conditional_t<detail::ContiguousRange<X>, detail::contiguous_range<X>, detail::no_tensor> {
};

/// A vector of elements is a contiguous range as well. This costs the compiler less than to find that out.
template <Element T, class Allocator>
struct tensor_traits<std::vector<T, Allocator>> {
    using element_type = T;
    static std::size_t size(const std::vector<T, Allocator>& x) { return x.size(); }
    static std::span<T> view(std::vector<T, Allocator>& x) { return span_of(x); }
    static std::span<const T> view(const std::vector<T, Allocator>& x) { return span_of(x); }
    static constexpr bool is_view = false;
};

namespace detail {

template <class X>
using traits_of = tensor_traits<std::remove_cvref_t<X>>;

template <class X, class To>
concept ViewableAs = requires(X& x) {
    { traits_of<X>::view(x) } -> std::convertible_to<To>;
};

}  // namespace detail

/// The type of a tensor's elements.
template <class X>
using tensor_element = typename detail::traits_of<X>::element_type;

/// A type whose elements can be read: an input of collectives. `X` may be `const` or a reference.
template <class X>
concept Tensor = requires(const std::remove_reference_t<X>& x, std::span<tensor_element<X>> to) {
    { detail::traits_of<X>::size(x) } -> std::convertible_to<std::size_t>;
    requires detail::ViewableAs<decltype(x), std::span<const tensor_element<X>>> ||
                 requires { detail::traits_of<X>::read(x, to); };
};

/// A tensor whose elements can be written too: an output of collectives.
template <class X>
concept OutputTensor = Tensor<X> && requires(X& x, std::span<const tensor_element<X>> from) {
    requires detail::ViewableAs<X, std::span<tensor_element<X>>> || requires { detail::traits_of<X>::write(from, x); };
};

namespace detail {

template <class X>
constexpr coordinate_order order_of = coordinate_order::any;
template <class X>
    requires requires { traits_of<X>::order; }
constexpr coordinate_order order_of<X> = traits_of<X>::order;

/// Whether two tensors number their coordinates alike.
template <class X, class Y>
constexpr bool same_order =
    // NOLINTNEXTLINE(misc-redundant-expression): is so only where X is Y
    order_of<X> == order_of<Y> || order_of<X> == coordinate_order::any || order_of<Y> == coordinate_order::any;

/// Whether what an argument refers to outlives the call. It is true of types that are not tensors.
template <class Argument>
constexpr bool is_lasting = std::is_lvalue_reference_v<Argument> || !Tensor<Argument>;
template <class Argument>
    requires requires { requires traits_of<Argument>::is_view; }
constexpr bool is_lasting<Argument> = true;

template <Tensor X>
std::size_t size_of(const X& x) {
    return traits_of<X>::size(x);
}

/// A type whose `view(x)` may be called for every object, and converts to `To`.
template <class X, class To>
concept AlwaysViewableAs = ViewableAs<X, To> && !requires(X& x) { traits_of<X>::is_contiguous(x); };

/// Whether `view(x)` may be called and converts to `To`.
template <class To, class X>
bool has_view(X& x) {
    if constexpr (!ViewableAs<X, To>)
        return false;
    else if constexpr (AlwaysViewableAs<X, To>)
        return true;
    else
        return traits_of<X>::is_contiguous(x);
}

/// Copies the elements of `x` to `to`, which has the same size.
template <Tensor X>
void read_tensor(const X& x, std::span<tensor_element<X>> to) {
    using elements = std::span<const tensor_element<X>>;
    if constexpr (ViewableAs<const X, elements>)
        if (has_view<elements>(x)) {
            const elements from = traits_of<X>::view(x);
            copy_elements(from.data(), from.size(), to.data());
            return;
        }
    if constexpr (requires { traits_of<X>::read(x, to); }) traits_of<X>::read(x, to);
}

/// Copies `from` to the elements of `x`, which has the same size.
template <OutputTensor X>
void write_tensor(std::span<const tensor_element<X>> from, X& x) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (ViewableAs<X, elements>)
        if (has_view<elements>(x)) {
            const elements to = traits_of<X>::view(x);
            copy_elements(from.data(), from.size(), to.data());
            return;
        }
    if constexpr (requires { traits_of<X>::write(from, x); }) traits_of<X>::write(from, x);
}

}  // namespace detail

}}  // namespace rill::RILL_ABI
