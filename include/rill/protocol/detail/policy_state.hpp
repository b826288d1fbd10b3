#pragma once

#include <rill/collective/agree.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/saved_part.hpp>
#include <rill/core/fingerprint.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a policy binds to, for elements of `T`.
template <class Policy, class T>
using bound_to = decltype(std::declval<const Policy&>().template bind<T>(std::size_t{}));

/// Of values that all ranks must have alike, bit for bit.
template <class T>
std::uint64_t hash_of(std::span<const T> values) {
    return fingerprint(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

/// A writer that keeps no values, but a hash of the names and bytes that a part saves.
class state_hash {
  public:
    std::uint64_t value() const { return value_; }

    template <class Values>
    void add(std::string_view name, const Values& values) {
        if constexpr (requires { std::span(values); })
            value_ = mix64(value_, fingerprint(name), hash_of(std::span(values)));
        else
            value_ = mix64(value_, fingerprint(name), hash_of(std::span(&values, 1)));
    }

  private:
    std::uint64_t value_ = 0;
};

/// The exception that leaves `work()`, or null.
template <class Work>
std::exception_ptr thrown_by(Work&& work) {
    try {
        work();
    } catch (const std::exception&) {
        return std::current_exception();
    }
    return nullptr;
}

/// Collective, after each rank has read its state. Where it was `refused`, that rank throws this and the others a
/// `peer_failure` with its text. All throw a `mismatch` if what ranks have `read` differs.
template <class Group>
void agree_on_state(Group& group, const std::exception_ptr& refused, std::uint64_t read) {
    const std::exception_ptr differs =
        thrown_by([&] { agree(group, option_names{{"state that it goes on from"}}, {option_hash(read)}, refused); });
    for (const std::exception_ptr& thrown : {refused, differs})
        if (thrown != nullptr) std::rethrow_exception(thrown);
}

}}}  // namespace rill::RILL_ABI::detail
