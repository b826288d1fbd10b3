#include <rill/collective/fusion.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace rill;

namespace {

bucket_plan plan_of(std::size_t bytes, const std::vector<std::size_t>& sizes) {
    return fusion{.bytes = bytes}.bind(sizes, sizeof(float));
}
std::vector<bucket> buckets_of(const bucket_plan& plan) { return {plan.buckets().begin(), plan.buckets().end()}; }

}  // namespace

TEST_CASE("fusion: neighbouring tensors share a bucket while they fit, from the last tensor to the first") {
    const bucket_plan plan = plan_of(40, {3, 4, 6, 2, 8});
    CHECK(buckets_of(plan) == std::vector<bucket>{{{3, 5}, {13, 23}}, {{1, 3}, {3, 13}}, {{0, 1}, {0, 3}}});
    CHECK(plan.tensors() == 5);
    CHECK(plan.dimension() == 23);
    const std::size_t expected[] = {2, 1, 1, 0, 0};
    for (std::size_t tensor = 0; tensor < 5; ++tensor) CHECK(plan.bucket_of(tensor) == expected[tensor]);
}

TEST_CASE("fusion: a tensor that is larger than a bucket has its own bucket") {
    CHECK(buckets_of(plan_of(40, {2, 11, 2})) ==
          std::vector<bucket>{{{2, 3}, {13, 15}}, {{1, 2}, {2, 13}}, {{0, 1}, {0, 2}}});
    CHECK(buckets_of(plan_of(0, {2, 0, 2})) == std::vector<bucket>{{{1, 3}, {2, 4}}, {{0, 1}, {0, 2}}});
    CHECK(plan_of(~std::size_t{0}, {1000, 1000}).buckets().size() == 1);
}

TEST_CASE("fusion: no tensors make no buckets, empty ones make one") {
    CHECK(plan_of(40, {}).buckets().empty());
    CHECK(plan_of(40, {}).dimension() == 0);
    CHECK(buckets_of(plan_of(40, {0, 0})) == std::vector<bucket>{{{0, 2}, {0, 0}}});
}

TEST_CASE("fusion: plans with other buckets have other fingerprints") {
    const auto usual = plan_of(40, {3, 4, 6, 2, 8}).fingerprint();
    CHECK(plan_of(43, {3, 4, 6, 2, 8}).fingerprint() == usual);  // the same buckets
    CHECK(plan_of(60, {3, 4, 6, 2, 8}).fingerprint() != usual);
    CHECK(plan_of(40, {4, 3, 6, 2, 8}).fingerprint() != usual);
    CHECK(plan_of(40, {3, 4, 6, 2, 9}).fingerprint() != usual);
}

TEST_CASE("fusion: a plan by hand goes from the last tensor to the first") {
    const std::vector<std::size_t> sizes{1, 2};
    bucket_plan plan(sizes);
    CHECK_THROWS_AS(plan.put_before(1), contract_violation);
    plan.begin_bucket();
    CHECK_THROWS_AS(plan.put_before(0), contract_violation);
    plan.put_before(1);
    plan.put_before(0);
    CHECK(buckets_of(plan) == std::vector<bucket>{{{0, 2}, {0, 3}}});
}
