#pragma once

#include <rill/core/config.hpp>
#include <rill/core/function_ref.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// Holds a callable of the user's choice with a fixed signature, or none; describes networks and machines. Copies share
/// the callable, so equal arguments must always give equal results, and it must be callable as const.
template <class Signature>
class any_model;

template <class Result, class... Arguments>
class any_model<Result(Arguments...)> {
  public:
    any_model() = default;
    template <class Function>
        requires(!std::same_as<std::remove_cvref_t<Function>, any_model> &&
                 detail::callable_object<const Function, Result, Arguments...>)
    any_model(Function function)  // NOLINT(google-explicit-constructor): a function is a model
        : function_(std::make_shared<const Function>(std::move(function))), call_([](const void* f, Arguments... of) {
              return static_cast<Result>((*static_cast<const Function*>(f))(of...));
          }) {}

    explicit operator bool() const { return function_ != nullptr; }
    /// Calls the stored callable, which must exist.
    Result operator()(Arguments... of) const { return call_(function_.get(), of...); }

    /// True when both share one callable, that is, one is a copy of the other, or when both are empty.
    friend bool operator==(const any_model&, const any_model&) = default;

  private:
    std::shared_ptr<const void> function_;
    Result (*call_)(const void*, Arguments...) = nullptr;
};

}}  // namespace rill::RILL_ABI
