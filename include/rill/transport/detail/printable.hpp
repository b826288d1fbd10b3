#pragma once

#include <rill/core/config.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Replaces characters that cannot be printed by `?`; a NUL, for example, would end the text of `what()`.
inline std::string printable(std::string_view text) {
    std::string shown(text);
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return shown;
}

}}}  // namespace rill::RILL_ABI::detail
