#include <rill/core/chain.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

TEST_CASE("a chain holds what is added, in order, at addresses that stay") {
    rill::chain<std::string> all;
    std::vector<const std::string*> where;
    for (int i = 0; i < 5; ++i) where.push_back(&all.add(std::to_string(i)));
    std::string joined;
    std::size_t i = 0;
    for (const std::string& each : all) {
        CHECK(&each == where[i++]);
        joined += each;
    }
    CHECK(joined == "01234");
}

TEST_CASE("a chain destroys what it holds") {
    const auto counted = std::make_shared<int>(1);
    {
        rill::chain<std::shared_ptr<int>> all;
        for (int i = 0; i < 3; ++i) all.add(counted);
        CHECK(counted.use_count() == 4);
    }
    CHECK(counted.use_count() == 1);
}

TEST_CASE("a chain can be moved") {
    rill::chain<int> one;
    one.add(1);
    rill::chain<int> other = std::move(one);
    other.add(2);
    one = rill::chain<int>();
    one.add(3);
    const auto joined = [](const rill::chain<int>& all) {
        std::vector<int> values;
        for (const int each : all) values.push_back(each);
        return values;
    };
    CHECK(joined(other) == std::vector{1, 2});
    CHECK(joined(one) == std::vector{3});
    other = std::move(one);
    CHECK(joined(other) == std::vector{3});
}
