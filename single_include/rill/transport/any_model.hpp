// rill 0.1.0: <rill/transport/any_model.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP
#define RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/any_model.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/any_model.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

// ===== rill/transport/any_model.hpp

namespace rill::inline RILL_ABI {

/// A function of the user's choice with a signature of ours, or none: how networks and machines are described. Copies
/// share it, so it must answer the same question alike every time; it must be callable as a constant.
template <class Signature>
class any_model;

template <class Result, class... Arguments>
class any_model<Result(Arguments...)> {
  public:
    any_model() = default;
    template <class Function>
        requires(!std::same_as<std::remove_cvref_t<Function>, any_model> &&
                 std::is_invocable_r_v<Result, const Function&, Arguments...>)
    any_model(Function function)  // NOLINT(google-explicit-constructor): a function is a model
        : function_(std::make_shared<const Function>(std::move(function))), call_([](const void* f, Arguments... of) {
              return static_cast<Result>((*static_cast<const Function*>(f))(of...));
          }) {}

    explicit operator bool() const { return function_ != nullptr; }
    /// There must be one.
    Result operator()(Arguments... of) const { return call_(function_.get(), of...); }

    /// Whether they are copies of each other.
    friend bool operator==(const any_model&, const any_model&) = default;

  private:
    std::shared_ptr<const void> function_;
    Result (*call_)(const void*, Arguments...) = nullptr;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP
