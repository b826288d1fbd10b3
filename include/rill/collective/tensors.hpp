#pragma once

#include <rill/concept/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// Several tensors as one: their coordinates one after the other, in the order given, which must be the same on all
/// ranks. Models `Tensor` if all elements are of one type.
///
///     rill::all_reduce(workers, rill::tensors{weights, bias}, rill::tensors{weights, bias});
///
/// Refers to arguments that are lvalues, and holds all others (spans, maps, views) itself. A range of tensors
/// (`std::vector<std::span<float>>`, `std::vector<Eigen::MatrixXf>`) is one tensor in the same way.
///
/// Cost: one operation with one set of messages. Tensors that are adjacent in memory are used where they are; others
/// are copied into memory of the group and back, a pass each way.
template <class... Xs>
class tensors {
  public:
    static_assert(
        (Tensor<Xs> && ...),
        "rill::tensors: an argument is not a tensor; include the adapter of its library (rill/adapt/eigen.hpp, "
        "rill/adapt/xtensor.hpp) or specialise rill::tensor_traits");

    constexpr explicit tensors(Xs... each) : each_(static_cast<Xs&&>(each)...) {}

    /// Calls visit(tensor) for each of them, in order.
    template <class Visit>
    constexpr void for_each(Visit&& visit) {
        std::apply([&](auto&... each) { (static_cast<void>(visit(each)), ...); }, each_);
    }
    template <class Visit>
    constexpr void for_each(Visit&& visit) const {
        std::apply([&](auto&... each) { (static_cast<void>(visit(each)), ...); }, each_);
    }

  private:
    std::tuple<Xs...> each_;
};

template <class... Xs>
tensors(Xs&&...) -> tensors<Xs...>;

namespace detail {

/// Calls `visit` for each tensor of a range or of `tensors`.
template <class Range, class Visit>
void for_each_tensor(Range& all, Visit&& visit) {
    for (auto&& x : all) visit(x);
}
template <class... Xs, class Visit>
void for_each_tensor(tensors<Xs...>& all, Visit&& visit) {
    all.for_each(visit);
}
template <class... Xs, class Visit>
void for_each_tensor(const tensors<Xs...>& all, Visit&& visit) {
    all.for_each(visit);
}

/// The types of the tensors in a sequence of type `S`: `const` if `S` gives access to `const` ones.
template <class... Xs>
struct tensor_types {
    template <class To>
    static constexpr bool viewable_as = (ViewableAs<Xs, To> && ...);
    template <class T>
    static constexpr bool all_of = (std::same_as<tensor_element<Xs>, T> && ...);
    static constexpr bool writable = (OutputTensor<Xs> && ...);
    static constexpr bool lasting = (is_lasting<Xs> && ...);
};

/// The tensor traits of a type that holds tensors. `Types<S>`: the `tensor_types` of `S`, which is that type, `const`
/// or not.
template <class T, template <class> class Types>
struct tensor_sequence {
    using element_type = T;

    template <class S>
    static std::size_t size(const S& all) {
        std::size_t sum = 0;
        for_each_tensor(all, [&](const auto& x) { sum += size_of(x); });
        return sum;
    }

    template <class S, class Visit>
    static void for_each_part(const S& all, Visit&& visit) {
        for_each_tensor(all, visit);
    }

    /// Whether each tensor begins where the one before ends; empty ones may lie anywhere.
    template <class S>
        requires(Types<S>::template viewable_as<std::span<const T>>)
    static bool is_contiguous(S& all) {
        const T* end = nullptr;
        bool together = true;
        for_each_tensor(all, [&]<class X>(X& x) {
            if (size_of(x) == 0 || !together) return;
            together = has_view<std::span<const T>>(x);
            if (!together) return;
            const std::span<const T> elements = traits_of<X>::view(x);
            together = end == nullptr || end == elements.data();
            end = elements.data() + elements.size();
        });
        return together;
    }

    template <class S>
        requires(Types<S>::template viewable_as<std::span<const T>>)
    static auto view(S& all) {
        using element = std::conditional_t<Types<S>::template viewable_as<std::span<T>>, T, const T>;
        element* first = nullptr;
        for_each_tensor(all, [&]<class X>(X& x) {
            if (first != nullptr || size_of(x) == 0) return;
            const std::span<element> elements = traits_of<X>::view(x);
            first = elements.data();
        });
        return std::span<element>(first, size(all));
    }

    template <class S>
    static void read(const S& all, std::span<T> to) {
        for_each_tensor(all, [&](const auto& x) {
            read_tensor(x, to.first(size_of(x)));
            to = to.subspan(size_of(x));
        });
    }

    template <class S>
        requires(Types<S>::writable)
    static void write(std::span<const T> from, S& all) {
        for_each_tensor(all, [&](auto& x) {
            write_tensor(from.first(size_of(x)), x);
            from = from.subspan(size_of(x));
        });
    }
};

template <class S, class X>
using held_by = std::conditional_t<
    std::is_lvalue_reference_v<X>, std::remove_reference_t<X>,
    std::conditional_t<std::is_const_v<S>, const std::remove_reference_t<X>, std::remove_reference_t<X>>>;

template <class S>
struct types_of_pack;
template <class... Xs>
struct types_of_pack<tensors<Xs...>> : tensor_types<held_by<tensors<Xs...>, Xs>...> {};
template <class... Xs>
struct types_of_pack<const tensors<Xs...>> : tensor_types<held_by<const tensors<Xs...>, Xs>...> {};

template <class R>
using in_range = std::remove_reference_t<decltype(*std::begin(std::declval<R&>()))>;
template <class R>
using types_of_range = tensor_types<in_range<R>>;

template <class R>
concept TensorRange = requires(R& range) {
    std::end(range);
    requires !std::same_as<std::remove_cv_t<in_range<R>>, R>;
    requires Tensor<in_range<R>>;
};

}  // namespace detail

template <class X, class... Xs>
    requires(detail::tensor_types<X, Xs...>::template all_of<tensor_element<X>>)
struct tensor_traits<tensors<X, Xs...>> : detail::tensor_sequence<tensor_element<X>, detail::types_of_pack> {
    static constexpr bool is_view = detail::tensor_types<X, Xs...>::lasting;
};

template <detail::TensorRange R>
struct tensor_traits<R> : detail::tensor_sequence<tensor_element<detail::in_range<R>>, detail::types_of_range> {
    static constexpr bool is_view =
        std::ranges::enable_borrowed_range<R> || detail::is_lasting<std::remove_cv_t<detail::in_range<R>>>;
};

}}  // namespace rill::RILL_ABI
