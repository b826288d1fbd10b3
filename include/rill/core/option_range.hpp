// Checks that the options of policies are within their ranges.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/text.hpp>
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
inline std::string spelled_value(std::string_view value) { return std::string(value); }
template <std::integral Number>
std::string spelled_value(Number value) {
    return text_of({value});
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_option(std::string_view option, const std::string& value,
                                                                 std::string_view allowed, rank_t rank) {
    const std::string told = text_of({"rill: ", option, " is ", value, "; it must be ", allowed});
    throw contract_violation(rank == no_rank ? told : text_of({told, ", on rank ", rank}));
}

/// Returns `value` if `holds`; otherwise throws `contract_violation` naming the option, its value and the allowed
/// values. It checks at every contract level, because a policy is bound only once. `rank` is the caller's rank, named
/// in the message where there is a group.
template <class Number>
constexpr Number require_option(bool holds, std::string_view option, Number value, std::string_view allowed,
                                rank_t rank = no_rank) {
    if (holds) return value;
    refuse_option(option, spelled_value(value), allowed, rank);
}

}}}  // namespace rill::RILL_ABI::detail
