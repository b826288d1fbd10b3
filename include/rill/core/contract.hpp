#pragma once

#include <rill/core/config.hpp>
#include <rill/core/text.hpp>

#include <stdexcept>

namespace rill { inline namespace RILL_ABI {

/// Thrown when the caller breaks a precondition. Nothing has been changed or sent.
class contract_violation : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void contract_failed(const char* condition, const char* message,
                                                                   const char* file, int line) {
    throw contract_violation(text_of({"rill: ", message, " (expected: ", condition, ") at ", file, ":", line}));
}
}  // namespace detail
}}  // namespace rill::RILL_ABI

#define RILL_DETAIL_CHECK(condition, message) \
    ((condition) ? static_cast<void>(0) : ::rill::detail::contract_failed(#condition, message, __FILE__, __LINE__))

/// Checks a precondition at constant cost, at the levels `RILL_CONTRACTS_FAST` and `RILL_CONTRACTS_DEBUG`.
#if RILL_CONTRACTS >= RILL_CONTRACTS_FAST
#define RILL_EXPECTS(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS(condition, message) static_cast<void>(0)
#endif

/// Checks a precondition by reading whole inputs, at the level `RILL_CONTRACTS_DEBUG`.
#if RILL_CONTRACTS >= RILL_CONTRACTS_DEBUG
#define RILL_EXPECTS_DEBUG(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS_DEBUG(condition, message) static_cast<void>(0)
#endif
