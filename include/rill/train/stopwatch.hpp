#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Times the phases of a step on a transport's clock.
template <class Net>
class stopwatch {
  public:
    explicit stopwatch(const Net& net) : net_(&net), begun_(net.now()), last_(begun_) {}

    /// The time since the last call, or since this was made.
    duration lap() {
        const time_point before = last_;
        last_ = net_->now();
        return last_ - before;
    }
    /// The time since this was made.
    duration total() const { return net_->now() - begun_; }

  private:
    const Net* net_;
    time_point begun_;
    time_point last_;
};

}}}  // namespace rill::RILL_ABI::train
