#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

namespace detail {

/// A result that a function which returns `To` can return. `std::is_invocable_r` takes a compiler several times as long
/// as this, and each new type of body asks it.
template <class From, class To>
concept returned_as = std::is_void_v<To> || requires(From (&made)(), void (&take)(To)) { take(made()); };

template <class Body, class Result, class... Arguments>
concept callable_object = requires(Body& body, Arguments... arguments) {
    static_cast<const void*>(__builtin_addressof(body));
    { body(static_cast<Arguments&&>(arguments)...) } -> returned_as<Result>;
};

}  // namespace detail

/// Is defined for signatures of functions, such as `function_ref<bool(deadline)>`.
template <class Signature>
class function_ref;

/// Refers to a callable object, which must outlive it. A function that takes it in place of any callable is compiled
/// once and not for each caller.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
  public:
    template <class Body>
        requires(!std::same_as<std::remove_cvref_t<Body>, function_ref> &&
                 detail::callable_object<Body, Result, Arguments...>)
    function_ref(Body&& body)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : body_(const_cast<void*>(static_cast<const void*>(__builtin_addressof(body)))),
          call_(&call_body<std::remove_reference_t<Body>>) {}

    Result operator()(Arguments... arguments) const { return call_(body_, static_cast<Arguments&&>(arguments)...); }

  private:
    template <class Body>
    static Result call_body(void* of, Arguments... arguments) {
        return (*static_cast<Body*>(of))(static_cast<Arguments&&>(arguments)...);
    }

    void* body_;
    Result (*call_)(void*, Arguments...);
};

}}  // namespace rill::RILL_ABI
