#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>

namespace rill { inline namespace RILL_ABI {

/// The other members of an elastic team go on without this rank, or it is no member yet. `culprit()` is this rank.
class excluded : public error {
  public:
    using error::error;
};

/// Too few members of an elastic team can be reached to decide on the next view, or there are fewer than
/// `elastic_options::least`. Nothing has changed. The text names the missing ranks; `culprit()` is the first of them.
class no_quorum : public error {
  public:
    using error::error;
};

}}  // namespace rill::RILL_ABI
