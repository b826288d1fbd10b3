#pragma once

#include <rill/core/bytes.hpp>

#include <cstddef>
#include <new>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Returns room for `count` uninitialised elements in a reusable buffer, whose contents are lost.
template <class T>
T* room(buffer& memory, std::size_t count) {
    if (memory.size() / sizeof(T) < count) {
        memory.clear();  // so that growing copies nothing
        memory.resize(count * sizeof(T));
    }
    return count == 0 ? nullptr : ::new (static_cast<void*>(memory.data())) T[count];
}

}}}  // namespace rill::RILL_ABI::kernel::detail
