// What is thrown where an option of a policy has a value that makes no sense.
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

/// Throws `contract_violation`, which names the option, its value and what it may be, where `holds` is false, else
/// returns the value; in every build, for a policy is bound once. `rank`: of which group's rank, where there is a
/// group.
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
