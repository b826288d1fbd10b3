// What is checked at the level that RILL_CONTRACTS names; one file per level includes this header.
#pragma once

#include <rill/core/contract.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

bool fast_check(bool holds) {
    RILL_EXPECTS(holds, "a fast check");
    return holds;
}
bool debug_check(bool holds) {
    RILL_EXPECTS_DEBUG(holds, "a thorough check");
    return holds;
}

/// The message of a failed check; empty if the check is satisfied or left out.
template <class Check>
std::string said(Check check, bool holds) {
    try {
        return check(holds) == holds ? "" : "never";
    } catch (const rill::contract_violation& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("contracts are checked from their level on") {
    CHECK(said(fast_check, true) == "");
    CHECK(said(debug_check, true) == "");
    const std::string fast = said(fast_check, false), debug = said(debug_check, false);
    CHECK(fast.empty() == (RILL_CONTRACTS < RILL_CONTRACTS_FAST));
    CHECK(debug.empty() == (RILL_CONTRACTS < RILL_CONTRACTS_DEBUG));
    if (!fast.empty()) {
        CHECK(fast.starts_with("rill: a fast check (expected: holds) at "));
        CHECK(fast.find("contract_cases.hpp:") != std::string::npos);
    }
}
