#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// A time, and its unit: "s", "ms" or "us".
struct readable_seconds {
    double value;
    const char* unit;
};

/// Seconds in the largest unit of which there is one.
constexpr readable_seconds readable(double seconds) {
    if (seconds >= 1) return {seconds, "s"};
    if (seconds >= 1e-3) return {seconds * 1e3, "ms"};
    return {seconds * 1e6, "us"};
}

}}}  // namespace rill::RILL_ABI::cost
