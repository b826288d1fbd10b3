// Exceptions for failures of the environment. They name the operation, the rank that failed, and the rank that reports
// it.
#pragma once

#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// The kind of an operation's failure; `throw_error` throws the matching exception.
enum class failure : std::uint8_t { exception, mismatch, timeout, protocol, invalid_value, deadlock };

/// Why an operation failed. The control channel carries it; every rank of the context gets the same notice.
struct abort_notice {
    std::uint64_t context = 0;
    std::uint64_t operation = 0;
    failure kind = failure::exception;
    rank_t culprit = no_rank;  ///< the rank that failed, or that neither entered nor answered
    rank_t other = no_rank;    ///< the other end of the link, where a link is at fault
    std::string reason;        ///< a complete message: what failed, where, and on which rank
    /// Waits on channels with a lower tag go on: those of operations before the one that has failed.
    std::uint32_t first_tag = 0;

    /// Whether it ends the waits on a tag of its context.
    bool ends(std::uint32_t tag) const { return first_tag <= tag; }

    friend bool operator==(const abort_notice&, const abort_notice&) = default;
};

/// Stands for every context: an abort of it ends the operations of the whole group of ranks.
inline constexpr std::uint64_t every_context = ~std::uint64_t{0};

/// Base of all errors of the environment.
class error : public std::runtime_error {
  public:
    [[gnu::cold, gnu::noinline]] explicit error(abort_notice notice)
        : std::runtime_error(text_of({"rill: ", notice.reason})), notice_(std::move(notice)) {}

    const abort_notice& notice() const noexcept { return notice_; }
    rank_t culprit() const noexcept { return notice_.culprit; }

  private:
    abort_notice notice_;
};

/// Another rank failed during an operation of this rank. `culprit()` is its rank, `what()` says why it failed.
class peer_failure : public error {
  public:
    using error::error;
};

/// The ranks called different operations, or the same one with different types, dimensions or options.
class mismatch : public error {
  public:
    using error::error;
};

/// A rank did not enter the operation, or did not answer, before the operation's deadline.
class timeout : public error {
  public:
    using error::error;
};

/// Received bytes are not a valid frame.
class protocol_error : public error {
  public:
    using error::error;
    [[gnu::cold, gnu::noinline]] explicit protocol_error(std::string reason)
        : error(abort_notice{.kind = failure::protocol, .reason = std::move(reason)}) {}
};

/// A value that cannot be aggregated (a NaN); the message names the coordinate.
class invalid_value : public error {
  public:
    using error::error;
    [[gnu::cold, gnu::noinline]] explicit invalid_value(std::string reason)
        : error(abort_notice{.kind = failure::invalid_value, .reason = std::move(reason)}) {}
};

/// Every rank waits and nothing can happen any more. Only the simulator can detect this; the message says who waits for
/// whom.
class deadlock : public error {
  public:
    using error::error;
};

/// Throws the exception that matches `notice.kind`.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_error(const abort_notice& notice) {
    switch (notice.kind) {
        case failure::mismatch: throw mismatch(notice);
        case failure::timeout: throw timeout(notice);
        case failure::protocol: throw protocol_error(notice);
        case failure::invalid_value: throw invalid_value(notice);
        case failure::deadlock: throw deadlock(notice);
        case failure::exception: break;
    }
    throw peer_failure(notice);
}

}}  // namespace rill::RILL_ABI
