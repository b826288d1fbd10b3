// Gives collectives the contiguous elements of their arguments, and writes results back.
#pragma once

#include <rill/concept/tensor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/span_of.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Holds an argument for the duration of an operation: a reference to a variable, or a view by value.
template <class Argument>
class held {
  public:
    explicit held(Argument& of) : of_(std::move(of)) {}
    Argument& get() const { return of_; }

  private:
    mutable std::remove_const_t<Argument> of_;  // a call is const, but may write through a view
};
template <class Argument>
class held<Argument&> {
  public:
    explicit held(Argument& of) : of_(__builtin_addressof(of)) {}  // views of xtensor overload &
    Argument& get() const { return *of_; }

  private:
    Argument* of_;
};

/// The values of an input, in the coordinate order of `X`.
template <Tensor X>
class evaluated {
  public:
    explicit evaluated(const X& of) : elements_(size_of(of)) { read_tensor(of, std::span(elements_)); }
    std::span<const tensor_element<X>> elements() const { return span_of(elements_); }

  private:
    aligned_vector<tensor_element<X>> elements_;
};

/// Whether the start of a background operation evaluates its input: yes for a temporary without memory of its own. Such
/// an expression may refer to other temporaries, as `f() + x` refers to what f returns.
template <class In>
constexpr bool is_evaluated_at_start = false;
template <class In>
    requires(!std::is_lvalue_reference_v<In> && Tensor<In>)
constexpr bool is_evaluated_at_start<In> =
    !ViewableAs<const std::remove_reference_t<In>, std::span<const tensor_element<In>>>;

/// An input in the form in which a background operation holds it.
template <class In>
decltype(auto) lasting_input(std::remove_reference_t<In>& input) {
    if constexpr (is_evaluated_at_start<In>)
        return evaluated<std::remove_cvref_t<In>>(input);
    else
        return static_cast<In&&>(input);
}

/// Memory for elements that are not contiguous in a tensor, for the duration of an operation.
template <class T>
struct staging {
    aligned_vector<T> elements;

    std::span<T> room(std::size_t size) {
        elements.resize(size);
        return span_of(elements);
    }
};

/// The stage of a lane or a group. Whoever has none gives its own stage.
template <class T, class Lane>
staging<T>& stage_of(Lane& lane) {
    return lane.template workspace<staging<T>>();
}
template <class T>
staging<T>& stage_of(staging<T>& own) {
    return own;
}

/// The elements of an input: its own memory where it has a view, else copied or evaluated into the stage of `where`.
template <Tensor X, class Where>
std::span<const tensor_element<X>> elements_of_input(const X& x, [[maybe_unused]] Where& where) {
    using elements = std::span<const tensor_element<X>>;
    if constexpr (AlwaysViewableAs<const X, elements>) {
        return traits_of<X>::view(x);
    } else {
        if constexpr (ViewableAs<const X, elements>)
            if (has_view<elements>(x)) return traits_of<X>::view(x);
        const auto room = stage_of<tensor_element<X>>(where).room(size_of(x));
        read_tensor(x, room);
        return room;
    }
}

/// The memory in which the elements of an output are computed: its own if it has a view, else the stage of `where`,
/// from which `deliver` copies them. If an input and an output share a stage, the operation runs in place.
template <OutputTensor X, class Where>
std::span<tensor_element<X>> elements_of_output(X& x, [[maybe_unused]] Where& where) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (AlwaysViewableAs<X, elements>) {
        return traits_of<X>::view(x);
    } else {
        if constexpr (ViewableAs<X, elements>)
            if (has_view<elements>(x)) return traits_of<X>::view(x);
        return stage_of<tensor_element<X>>(where).room(size_of(x));
    }
}

template <OutputTensor X>
void deliver([[maybe_unused]] std::span<const tensor_element<X>> made, [[maybe_unused]] X& x) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (!AlwaysViewableAs<X, elements>)
        if (!has_view<elements>(x)) write_tensor(made, x);
}

}}}  // namespace rill::RILL_ABI::detail

namespace rill { inline namespace RILL_ABI {

template <class X>
struct tensor_traits<detail::evaluated<X>> {
    using element_type = tensor_element<X>;
    static constexpr coordinate_order order = detail::order_of<X>;
    static std::size_t size(const detail::evaluated<X>& x) { return x.elements().size(); }
    static std::span<const element_type> view(const detail::evaluated<X>& x) { return x.elements(); }
};

}}  // namespace rill::RILL_ABI
