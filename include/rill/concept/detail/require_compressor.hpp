// Compile-time errors that name what a codec lacks to model `Compressor`.
#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/detail/first_unmet.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

template <class X>
concept Bindable = requires(const X& policy) { policy.bind(std::size_t{}); };

/// Whether X is probably meant as a compressor, even if it is unbound, incomplete, or of another element type.
template <class X>
concept MeantAsCompressor =
    Bindable<X> || requires { X::is_lossless; } || requires { X::is_contractive; } || requires(X& x) { x.commit(); };

template <class C>
concept CompressorOfAny =
    Compressor<C, float> || Compressor<C, double> || Compressor<C, std::int32_t> || Compressor<C, std::int64_t>;

/// Names the first member of `Compressor` that C lacks, for elements T.
template <class C, class T>
consteval bool require_codec_members() {
    using input = std::span<const T>;
    constexpr int unmet = first_unmet(
        requires { requires IndexType<typename C::index_type>; },
        requires(const C& c) {
            { c.dimension() } -> std::same_as<std::size_t>;
        }, requires(C& c) { c.begin(std::uint64_t{}); },
        requires(C& c) {
            { c.coded_dimension() } -> std::same_as<std::size_t>;
        }, requires(C& c, input in) { c.encode(in).range(); }, requires(C& c) { c.commit(); },
        requires(C& c) { c.rollback(); }, requires(const C& c) { c.codings(); },
        requires {
            C::is_coordinatewise;
            C::is_lossless;
            C::is_unbiased;
            C::is_contractive;
            C::has_lossless_copy;
        });
    static_assert(unmet != 0, "rill::Compressor: index_type is missing; add `using index_type = std::uint32_t;`");
    static_assert(unmet != 1, "rill::Compressor: dimension() is missing; add `std::size_t dimension() const`");
    static_assert(unmet != 2, "rill::Compressor: begin(number) is missing; add `void begin(std::uint64_t)`");
    static_assert(unmet != 3, "rill::Compressor: coded_dimension() is missing; add `std::size_t coded_dimension()`");
    static_assert(unmet != 4,
                  "rill::Compressor: encode(input) is missing for these elements; add `encode(std::span<const T>)`, "
                  "which returns a rill::stream_view");
    static_assert(unmet != 5, "rill::Compressor: commit() is missing; add `void commit()`");
    static_assert(unmet != 6, "rill::Compressor: rollback() is missing; add `void rollback()`");
    static_assert(unmet != 7, "rill::Compressor: codings() is missing; add `rill::stream_codings codings() const`");
    static_assert(unmet != 8,
                  "rill::Compressor: a flag is missing; add `static constexpr bool` is_coordinatewise, is_lossless, "
                  "is_unbiased, is_contractive and has_lossless_copy");
    static_assert(unmet != -1 || Compressor<C, T>, "rill::Compressor: a member is missing; see rill::Compressor");
    return Compressor<C, T>;
}

/// Checks an argument that stands where a codec is expected and names the first problem. `Argument` is the type of the
/// argument as it was passed: an lvalue reference for an lvalue.
template <class Argument, class T>
consteval bool require_compressor() {
    using type = std::remove_reference_t<Argument>;
    using C = std::remove_const_t<type>;
    constexpr bool other_element = !Compressor<C, T> && CompressorOfAny<C>;
    constexpr int unmet =
        first_unmet(!Bindable<C>, std::is_lvalue_reference_v<Argument>, !std::is_const_v<type>, !other_element);
    static_assert(unmet != 0,
                  "rill::collective: the compressor is not bound to this worker; keep what its bind(dimension) returns "
                  "for all steps, and pass that");
    static_assert(unmet != 1,
                  "rill::collective: the compressor is a temporary, which forgets what it has not sent; keep what "
                  "bind(dimension) returns in a variable for all steps");
    static_assert(unmet != 2,
                  "rill::collective: the compressor is const, but its state changes with each step; declare it without "
                  "const");
    static_assert(unmet != 3,
                  "rill::collective: the compressor is bound to another element type than the tensors have; bind it to "
                  "theirs, as in bind<double>(dimension)");
    if constexpr (unmet >= 0)
        return false;
    else
        return require_codec_members<C, T>();
}

}}}  // namespace rill::RILL_ABI::detail
