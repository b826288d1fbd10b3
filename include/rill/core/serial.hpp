#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// The default executor: runs tasks one after the other on the calling thread. Work is not divided. Models `Executor`.
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
