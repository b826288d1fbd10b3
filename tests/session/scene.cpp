#include <rill/session/detail/scene.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using rill::abort_notice;
using rill::failure;

namespace {

const rill::detail::scene here{
    .context = 7, .operation = 3, .first_tag = 3, .self = 2, .what = "barrier (operation 3)"};

/// What the others are told of `thrown`.
abort_notice told(const rill::error& thrown) { return here.notice_of(&thrown); }

}  // namespace

TEST_CASE("scene: what names no culprit is this rank's own failure") {
    const abort_notice own{.context = 7,
                           .operation = 3,
                           .culprit = 2,
                           .reason = "barrier (operation 3): rank 2: no more images",
                           .first_tag = 3};
    const std::runtime_error thrown("no more images");
    CHECK(here.notice_of(&thrown) == own);
    CHECK(here.notice_of(nullptr).reason == "barrier (operation 3): rank 2: an exception of unknown type");
    const abort_notice nan = told(rill::invalid_value("coordinate 5 is NaN"));
    CHECK(nan.kind == failure::invalid_value);
    CHECK(nan.culprit == 2);
    CHECK(nan.reason == "barrier (operation 3): rank 2: coordinate 5 is NaN");
}

TEST_CASE("scene: a failure of this context keeps its culprit, one of another group becomes this rank's own") {
    const abort_notice known{.context = 7, .operation = 1, .kind = failure::timeout, .culprit = 5, .reason = "rank 5"};
    const abort_notice passed_on = told(rill::timeout(known));
    CHECK(passed_on.culprit == 5);
    CHECK(passed_on.reason == "rank 5");
    CHECK(passed_on.operation == 3);
    abort_notice foreign = known;
    foreign.context = 8;
    const abort_notice own = told(rill::timeout(foreign));
    CHECK(own.kind == failure::exception);
    CHECK(own.culprit == 2);
    CHECK(own.reason == "barrier (operation 3): rank 2: rill: rank 5");
    const abort_notice nobody =
        told(rill::deadlock({.context = rill::every_context, .kind = failure::deadlock, .reason = ""}));
    CHECK(nobody.culprit == rill::no_rank);
}

TEST_CASE("scene: what cannot be read is blamed on its sender, with both ends of the link, unless somebody is known") {
    struct place {
        const rill::detail::scene& scene() const { return here; }
    };
    const auto thrown_by = [](auto read) {
        try {
            rill::read_from(place{}, 4, read);
        } catch (const rill::protocol_error& e) {
            return e.notice();
        }
        return abort_notice{};
    };
    CHECK(rill::read_from(place{}, 4, [] { return 9; }) == 9);
    const abort_notice refused = thrown_by([] { throw rill::protocol_error("truncated"); });
    CHECK(refused.culprit == 4);
    CHECK(refused.other == 2);
    CHECK(refused.reason == "barrier (operation 3): rank 4 sent bytes that are no valid frame: truncated");
    const abort_notice known{.context = 7, .kind = failure::protocol, .culprit = 1, .reason = "rank 1"};
    CHECK(thrown_by([&] { throw_error(known); }) == known);
}
