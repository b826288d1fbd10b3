#pragma once

#include <rill/core/bytes.hpp>

#include <cstddef>
#include <memory>

namespace rill::inline RILL_ABI::kernel::detail {

/// Room for `count` uninitialised elements in a reusable buffer; what the buffer held before is lost.
template <class T>
T* room(buffer& memory, std::size_t count) {
    if (memory.size() / sizeof(T) < count) {
        memory.clear();  // growing must not copy what nobody will read
        memory.resize(count * sizeof(T));
    }
    T* first = reinterpret_cast<T*>(memory.data());
    std::uninitialized_default_construct_n(first, count);
    return first;
}

}  // namespace rill::inline RILL_ABI::kernel::detail
