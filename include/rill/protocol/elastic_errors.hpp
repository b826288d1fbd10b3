#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>

namespace rill { inline namespace RILL_ABI {

/// The other members of an elastic team go on without this rank. `culprit()` is this rank.
class excluded : public error {
  public:
    using error::error;
};

/// Too few members of an elastic team can be reached to decide on the next view, or to work. Nothing has changed; the
/// text names who is missing, and `culprit()` is the first of them.
class no_quorum : public error {
  public:
    using error::error;
};

}}  // namespace rill::RILL_ABI
