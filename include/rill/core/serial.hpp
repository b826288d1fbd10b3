#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// The executor of whoever names none: tasks run one after the other, where they are asked for, and work is not cut.
struct serial {
    static constexpr const char* name = "serial";

    static constexpr int concurrency() { return 1; }

    template <class Body>
    constexpr void run(std::size_t tasks, Body&& body) const {
        for (std::size_t i = 0; i < tasks; ++i) body(i);
    }
    friend constexpr bool operator==(serial, serial) = default;
};

}}  // namespace rill::RILL_ABI
