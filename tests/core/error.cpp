#include <rill/core/error.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace rill;

namespace {
template <class Expected>
void check_kind(failure kind) {
    const abort_notice notice{
        .context = 1, .operation = 2, .kind = kind, .culprit = 3, .other = 4, .reason = "rank 3 did it"};
    try {
        throw_error(notice);
    } catch (const Expected& e) {
        CHECK(typeid(e) == typeid(Expected));
        CHECK(e.notice() == notice);
        CHECK(e.culprit() == 3);
        CHECK(std::string(e.what()) == "rill: rank 3 did it");
    }
}
}  // namespace

TEST_CASE("each kind of failure is thrown as its own type") {
    check_kind<peer_failure>(failure::exception);
    check_kind<mismatch>(failure::mismatch);
    check_kind<timeout>(failure::timeout);
    check_kind<protocol_error>(failure::protocol);
    check_kind<invalid_value>(failure::invalid_value);
    check_kind<deadlock>(failure::deadlock);
}

TEST_CASE("errors of values and bytes name no rank until a group does") {
    CHECK(protocol_error("bad bytes").notice().kind == failure::protocol);
    CHECK(invalid_value("coordinate 3 is NaN").notice().kind == failure::invalid_value);
    CHECK(invalid_value("coordinate 3 is NaN").culprit() == no_rank);
    CHECK(std::string(invalid_value("coordinate 3 is NaN").what()) == "rill: coordinate 3 is NaN");
}
