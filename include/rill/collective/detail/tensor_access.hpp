// From the arguments of a collective to contiguous elements, and back.
#pragma once

#include <rill/concept/tensor.hpp>
#include <rill/core/bytes.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// An argument for as long as an operation goes on: a reference to a variable, or a view by value.
template <class Argument>
class held {
  public:
    explicit held(Argument& of) : of_(std::move(of)) {}
    Argument& get() const { return of_; }

  private:
    mutable std::remove_const_t<Argument> of_;  // a call is const, what it writes through a view is not
};
template <class Argument>
class held<Argument&> {
  public:
    explicit held(Argument& of) : of_(__builtin_addressof(of)) {}  // views of xtensor overload &
    Argument& get() const { return *of_; }

  private:
    Argument* of_;
};

/// The values of an input in the order of `X`.
template <Tensor X>
class evaluated {
  public:
    explicit evaluated(const X& of) : elements_(size_of(of)) { read_tensor(of, std::span(elements_)); }
    std::span<const tensor_element<X>> elements() const { return elements_; }

  private:
    aligned_vector<tensor_element<X>> elements_;
};

/// Whether an input of an operation in the background is evaluated by its start: what is a temporary and has no memory
/// of its own. An expression may refer to other temporaries, as `f() + x` does to what f returns.
template <class In>
constexpr bool is_evaluated_at_start = false;
template <class In>
    requires(!std::is_lvalue_reference_v<In> && Tensor<In>)
constexpr bool is_evaluated_at_start<In> =
    !ViewableAs<const std::remove_reference_t<In>, std::span<const tensor_element<In>>>;

/// An input as an operation in the background is to hold it.
template <class In>
decltype(auto) lasting_input(std::remove_reference_t<In>& input) {
    if constexpr (is_evaluated_at_start<In>)
        return evaluated<std::remove_cvref_t<In>>(input);
    else
        return static_cast<In&&>(input);
}

/// Where elements lie for the time of an operation that have no contiguous place of their own; kept by a lane.
template <class T>
struct staging {
    aligned_vector<T> elements;

    std::span<T> room(std::size_t size) {
        elements.resize(size);
        return elements;
    }
};

/// The elements of an input: its own memory where it has a view, else copied or evaluated into `stage`.
template <Tensor X>
std::span<const tensor_element<X>> elements_of_input(const X& x, staging<tensor_element<X>>& stage) {
    using elements = std::span<const tensor_element<X>>;
    if constexpr (ViewableAs<const X, elements>)
        if (has_view<elements>(x)) return traits_of<X>::view(x);
    const auto room = stage.room(size_of(x));
    read_tensor(x, room);
    return room;
}

/// Where the elements of an output are to be made: in its own memory where it has a view, else in `stage`, from which
/// `deliver` takes them. An input and an output that share a stage are one operation in place.
template <OutputTensor X>
std::span<tensor_element<X>> elements_of_output(X& x, staging<tensor_element<X>>& stage) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (ViewableAs<X, elements>)
        if (has_view<elements>(x)) return traits_of<X>::view(x);
    return stage.room(size_of(x));
}

template <OutputTensor X>
void deliver(std::span<const tensor_element<X>> made, X& x) {
    if (!has_view<std::span<tensor_element<X>>>(x)) write_tensor(made, x);
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
