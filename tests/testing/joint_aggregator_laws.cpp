#include <rill/testing/joint_aggregator_laws.hpp>

#include <rill/aggregate/median.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>

namespace {

using namespace rill;

enum class fault { none, order, agreement, ranks };

/// A median that breaks one law at a time.
template <fault what>
struct faulty_median {
    static constexpr const char* name = "faulty_median";
    static constexpr int least_ranks() { return what == fault::ranks ? 0 : 1; }
    template <class T>
    static T combine(std::span<T> values) {
        if (what == fault::order) return values.front();
        return aggregate::median::combine(values) + (what == fault::agreement ? T{1} : T{0});
    }
    friend bool operator==(faulty_median, faulty_median) = default;
};

template <fault what, class T>
std::string broken() {
    std::string names;
    testing::for_each_joint_aggregator_law<T>(faulty_median<what>{},
                                              [&](const char* name, const testing::law_outcome& outcome) {
                                                  CHECK(outcome.held == outcome.what.empty());
                                                  if (!outcome.held) names += std::string(name) + "; ";
                                              });
    return names;
}

}  // namespace

TEST_CASE_TEMPLATE("joint aggregator laws: each fault breaks its law", T, float, double, std::int32_t, std::int64_t) {
    CHECK(broken<fault::none, T>() == "");
    CHECK(broken<fault::order, T>() == "the order of contributions does not matter; ");
    CHECK(broken<fault::agreement, T>() == "the result of equal contributions is that value; ");
    CHECK(broken<fault::ranks, T>() == "a group of one rank or more is enough; ");
}
