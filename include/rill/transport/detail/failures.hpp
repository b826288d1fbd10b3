#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <exception>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Whether two notices report the same failure, perhaps in ranks and contexts of different groups. A run uses it to
/// find the culprit's rank in the run when an error leaves the scope of a subgroup.
inline bool same_failure(const abort_notice& a, const abort_notice& b) {
    return a.operation == b.operation && a.kind == b.kind && a.reason == b.reason;
}

/// A notice for all contexts of the exception being handled, which has left the body of `rank`. `origin_of`: finds the
/// run's own notice of a failure that an error reports.
[[gnu::cold, gnu::noinline]] inline abort_notice notice_of_thrown(
    rank_t rank, function_ref<std::optional<abort_notice>(const abort_notice&)> origin_of) {
    abort_notice notice{.culprit = rank, .reason = {}};
    try {
        throw;
    } catch (const error& caught) {
        notice = origin_of(caught.notice()).value_or(caught.notice());
    } catch (const std::exception& caught) {
        notice.reason = text_of({"rank ", rank, " failed: ", caught.what()});
    } catch (...) {
        notice.reason = text_of({"rank ", rank, " failed: an exception that is no std::exception"});
    }
    notice.context = every_context;
    return notice;
}

/// Ends a wait of an activity whose rank has left the scope of the activity by an exception.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_stopped(rank_t rank, std::uint64_t context) {
    throw_error(
        {.context = context,
         .culprit = rank,
         .reason = text_of({"rank ", rank, " did not wait for one of its activities because of an exception"})});
}

}}}  // namespace rill::RILL_ABI::detail
