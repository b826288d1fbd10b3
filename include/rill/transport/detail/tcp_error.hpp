#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>

#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp {

/// Thrown when the ranks do not meet, or a call of the system fails (`what()` has the system's text). The culprit is
/// the rank that reports it; `no_rank` where the options or the variables are wrong.
class library_error : public error {
  public:
    library_error(rank_t rank, std::string reason)
        : error(abort_notice{.culprit = rank,
                             .reason = rank == no_rank ? std::move(reason)
                                                       : "rank " + std::to_string(rank) + ": " + std::move(reason)}) {}
};

}}}  // namespace rill::RILL_ABI::tcp
