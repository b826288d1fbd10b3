#pragma once

#include <rill/concept/value_coding.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// A `ValueCoding` of the user's as the value coding of frames: `encoded{keep_all{}, own_values{my_coding{}}}`.
///
/// The coding has at most 16 bytes and no pointers or destructors (`std::is_trivially_copyable`). Ranks compare its
/// name and options in each operation. Float and double elements only.
template <class V>
struct own_values {
    V how{};

    static constexpr const char* name = V::name;
    static constexpr bool is_lossless = V::is_lossless;
    static constexpr bool is_unbiased = V::is_unbiased;
    static constexpr bool is_contractive = V::is_lossless || requires { requires V::is_contractive; };

    rill::coding coding() const {
        static_assert(
            std::is_empty_v<V> || HasOptions<V>,
            "rill::compress::own_values: the coding has members, by which ranks may differ, and does not name "
            "them; add `template <class Visit> void visit_options(Visit&& visit) const` with visit(\"name\", "
            "value) for each");
        static_assert(ValueCoding<V>,
                      "rill::compress::own_values: size, encode, decode, name, is_lossless or is_unbiased is missing; "
                      "see rill::ValueCoding");
        static_assert(
            std::is_trivially_copyable_v<V> && sizeof(V) <= sizeof(own_coding::memory),
            "rill::compress::own_values: the coding has more than 16 bytes, or is not trivially copyable; make "
            "its options numbers");
        rill::coding made{.values = value_coding::own, .own = {.does = &table}};
        std::memcpy(made.own.self.data(), &how, sizeof(V));
        return made;
    }
    friend constexpr bool operator==(const own_values&, const own_values&) = default;

  private:
    using memory = own_coding::memory;

    static V from(const memory& self) {
        V made;
        std::memcpy(static_cast<void*>(&made), self.data(), sizeof(V));
        return made;
    }
    template <class T>
    static constexpr own_coding::functions<T> functions_of{
        [](const memory& self, std::span<const T> values, random_key key, std::uint64_t first, byte_span out) {
            from(self).encode(values, key, first, out);
        },
        [](const memory& self, byte_view bytes, std::span<T> values) { from(self).decode(bytes, values); }};
    static constexpr own_coding::table table{
        V::is_lossless,
        V::is_unbiased,
        is_contractive,
        [](const memory& self, std::size_t count, std::size_t bytes) { return from(self).size(count, bytes); },
        [](const memory& self) { return rill::fingerprint(from(self)); },
        functions_of<float>,
        functions_of<double>};
};

template <class V>
own_values(V) -> own_values<V>;

}}}  // namespace rill::RILL_ABI::compress
