// Checks that the options of policies are within their ranges.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace detail {

inline std::string spelled_value(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}
template <std::integral Number>
std::string spelled_value(Number value) {
    return std::to_string(value);
}

/// Returns `value` if `holds`; otherwise throws `contract_violation` naming the option, its value and the allowed
/// values. It checks at every contract level, because a policy is bound only once. `rank` is the caller's rank, named
/// in the message where there is a group.
template <class Number>
constexpr Number require_option(bool holds, std::string_view option, Number value, std::string_view allowed,
                                rank_t rank = no_rank) {
    if (holds) return value;
    std::string told("rill: ");
    told.append(option).append(" is ").append(spelled_value(value)).append("; it must be ").append(allowed);
    if (rank != no_rank) told.append(", on rank ").append(std::to_string(rank));
    throw contract_violation(told);
}

}}}  // namespace rill::RILL_ABI::detail
