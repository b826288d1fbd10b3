#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <algorithm>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Decides whether a wait polls before it sleeps, and how long. Polls keep a core, which the wait gives away after each
/// of them: the rank that will answer may be waiting for it. In return a message is taken as soon as it is there, while
/// a thread that sleeps is first woken, which takes up to 50 us on another core.
///
/// They pay only where something comes soon. After polls that found nothing, more and more waits sleep at once, until
/// polls find something again. Does no I/O and reads no clock.
class polling {
  public:
    /// A wait ends its polls when they have taken that long, and have been that many: where ranks outnumber the cores,
    /// others may take long between two of them.
    static constexpr duration longest = microseconds(50);
    static constexpr int fewest = 8;

    explicit polling(bool is_on = true) : is_on_(is_on) {}

    /// Whether the wait that begins polls.
    bool begins() {
        if (left_out_ == 0) return is_on_;
        --left_out_;
        return false;
    }
    /// The polls of a wait have ended.
    void ended(bool found) {
        pause_ = found ? 1 : std::min(2 * pause_, most_left_out);
        left_out_ = found ? 0 : pause_;
    }

  private:
    static constexpr int most_left_out = 256;

    bool is_on_;
    int pause_ = 1;     ///< waits that were left out last
    int left_out_ = 0;  ///< waits that still sleep at once
};

}}}  // namespace rill::RILL_ABI::tcp::detail
