#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// A time in a readable unit: "s", "ms" or "us".
struct readable_seconds {
    double value;
    const char* unit;
};

/// Converts seconds to the largest unit in which the value is at least 1, or to "us".
constexpr readable_seconds readable(double seconds) {
    if (seconds >= 1) return {seconds, "s"};
    if (seconds >= 1e-3) return {seconds * 1e3, "ms"};
    return {seconds * 1e6, "us"};
}

}}}  // namespace rill::RILL_ABI::cost
