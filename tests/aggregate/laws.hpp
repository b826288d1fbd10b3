// Checks that an aggregator keeps the shipped laws of its concept.
#pragma once

#include <rill/testing/aggregator_laws.hpp>
#include <rill/testing/joint_aggregator_laws.hpp>

#include <doctest/doctest.h>

namespace rill::aggregate_tests {

template <class T, class Fold>
void check_laws(const Fold& fold) {
    testing::for_each_aggregator_law<T>(fold, [](const char* name, const testing::law_outcome& outcome) {
        INFO(name);
        CHECK_MESSAGE(outcome.held, outcome.what);
    });
}

template <class T, class A>
void check_joint_laws(const A& aggregator) {
    testing::for_each_joint_aggregator_law<T>(aggregator, [](const char* name, const testing::law_outcome& outcome) {
        INFO(name);
        CHECK_MESSAGE(outcome.held, outcome.what);
    });
}

}  // namespace rill::aggregate_tests
