#pragma once

#include <rill/collective/detail/tensor_access.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Memory of a round of gossip, for elements that are not contiguous in a model and for what is made of them.
class model_memory {
  public:
    /// What it has given is free again.
    void reset() { arena_.reset(); }
    arena& bytes() { return arena_; }

    template <class T>
    std::span<T> room(std::size_t size) {
        return {reinterpret_cast<T*>(arena_.take(size * sizeof(T)).data()), size};
    }
    /// The tensor's own memory, or as much room, from which `deliver` copies.
    template <OutputTensor X>
    std::span<tensor_element<X>> under(X& x) {
        using elements = std::span<tensor_element<X>>;
        if constexpr (ViewableAs<X, elements>)
            if (has_view<elements>(x)) return traits_of<X>::view(x);
        return room<tensor_element<X>>(size_of(x));
    }
    /// The elements of a tensor: its own memory, or a copy.
    template <OutputTensor X>
    std::span<tensor_element<X>> values_of(X& x) {
        const std::span<tensor_element<X>> values = under(x);
        if (!has_view<std::span<tensor_element<X>>>(x)) read_tensor(x, values);
        return values;
    }

  private:
    arena arena_{};
};

}}}  // namespace rill::RILL_ABI::detail
