#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// Is defined for signatures of functions, such as `function_ref<bool(deadline)>`.
template <class Signature>
class function_ref;

/// Refers to a callable object, which must outlive it. A function that takes it in place of any callable is compiled
/// once and not for each caller.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
  public:
    template <class Body>
        requires(std::is_object_v<std::remove_reference_t<Body>> &&
                 !std::same_as<std::remove_cvref_t<Body>, function_ref> &&
                 std::is_invocable_r_v<Result, Body&, Arguments...>)
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
