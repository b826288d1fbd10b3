// How long a link may be quiet, by what was measured of it.
#include <rill/collective/detail/quiet_time.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/time.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using rill::duration;
using rill::milliseconds;
using rill::time_point;
using rill::detail::link_quiet;
using rill::detail::quiet_time;
using rill::detail::smoothed_time;

namespace {

constexpr std::size_t load = 1000;
constexpr rill::detect adaptive = rill::detect::adaptive(milliseconds(500), milliseconds(5));

/// An operation with one message of `bytes`, which is acknowledged after `took`.
void operate(quiet_time& all, link_quiet& over, duration took, std::size_t bytes = load,
             bool is_called_silent = false) {
    const time_point sent{};
    over.sent(sent);
    all.hear(over, is_called_silent, sent + took);
    all.measure(bytes, took);
    all.begin();
    all.learn(over);
}

}  // namespace

TEST_CASE("a smoothed time begins with the first one, and comes close to those that follow") {
    smoothed_time of;
    CHECK_FALSE(of.is_known);
    of.measure(800);
    CHECK(of == smoothed_time{true, 800, 400});
    for (int i = 0; i < 100; ++i) of.measure(80);
    CHECK(of.mean < 90);
    CHECK(of.deviation < 20);
}

TEST_CASE("the patience with a link is the first one until something was measured, and always where it is fixed") {
    link_quiet over;
    quiet_time measured(adaptive), fixed(rill::detect::fixed(milliseconds(300)));
    CHECK(measured.patience(over, false, load, load) == milliseconds(500));
    operate(measured, over, milliseconds(8));
    CHECK(measured.patience(over, false, load, load) < milliseconds(100));
    over = {};
    operate(fixed, over, milliseconds(8));
    CHECK(fixed.patience(over, false, load, load) == milliseconds(300));
}

TEST_CASE("the patience is the mean with a margin, and the time of the bytes there and back") {
    link_quiet over;
    quiet_time all(adaptive);
    for (int i = 0; i < 100; ++i) operate(all, over, milliseconds(8));
    const duration margin = milliseconds(5), mean = milliseconds(8), transfer = milliseconds(16);
    const duration patience = all.patience(over, false, load, load);
    CHECK(patience > mean + margin + transfer - milliseconds(1));
    CHECK(patience < mean + margin + transfer + milliseconds(1));
    CHECK(all.patience(over, true, load, load) == patience * 2);
    // A link of which nothing is known is like the others.
    CHECK(all.patience(link_quiet{}, false, load, load) == patience);
}

TEST_CASE("more than four times the bytes of all before have the first patience at least, and what was measured goes") {
    link_quiet over;
    quiet_time all(adaptive);
    for (int i = 0; i < 10; ++i) operate(all, over, milliseconds(1));
    CHECK(all.patience(over, false, load, 4 * load) < milliseconds(500));
    CHECK(all.patience(over, false, load, 4 * load + 1) == milliseconds(500));
    operate(all, over, milliseconds(40), 10 * load);
    CHECK(over.before == smoothed_time{true, milliseconds(40).ns, milliseconds(20).ns});
}

TEST_CASE("of a time for which a link was called silent only so much counts as makes the next patience longer") {
    link_quiet over;
    quiet_time all(adaptive);
    for (int i = 0; i < 100; ++i) operate(all, over, milliseconds(8));
    operate(all, over, rill::seconds(100), load, true);
    CHECK(over.before.mean > milliseconds(8).ns);
    CHECK(over.before.mean < milliseconds(16).ns);
}

TEST_CASE("the time between two acknowledgements counts, and the longest one of an operation") {
    link_quiet over;
    quiet_time all(adaptive);
    for (int i = 0; i < 3; ++i) over.sent(time_point{} + milliseconds(i));
    for (const int at : {3, 10, 12}) all.hear(over, false, time_point{} + milliseconds(at));
    CHECK(over.longest == milliseconds(7).ns);
    all.hear(over, false, time_point{} + rill::seconds(1));  // nothing is awaited
    CHECK(over.longest == milliseconds(7).ns);
}
