#include <rill/core/pool.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

TEST_CASE("pool: objects keep their addresses, and are handed out again in order and unchanged") {
    rill::pool<std::vector<int>> objects;
    std::vector<std::vector<int>*> taken;
    for (int i = 0; i < 100; ++i) {
        taken.push_back(&objects.take());
        CHECK(taken.back()->empty());
        taken.back()->push_back(i);
    }
    objects.reset();
    for (int i = 0; i < 100; ++i) {
        std::vector<int>& again = objects.take();
        CHECK(&again == taken[static_cast<std::size_t>(i)]);
        CHECK(again == std::vector<int>{i});
    }
    CHECK(objects.take().empty());
}

TEST_CASE("pool: makes no more objects than are in use at a time") {
    static int made = 0;
    struct object {
        object() { ++made; }
    };
    rill::pool<object> objects;
    for (const int in_use : {3, 2, 5, 5}) {
        for (int i = 0; i < in_use; ++i) objects.take();
        objects.reset();
    }
    CHECK(made == 5);
}

TEST_CASE("pool: a moved-from pool is empty") {
    rill::pool<int> from;
    int* const first = &from.take();
    rill::pool<int> to = std::move(from);
    to.reset();
    CHECK(&to.take() == first);
    CHECK(&from.take() != first);
    from.reset();
    from = std::move(to);
    CHECK(&from.take() != first);
    from.reset();
    CHECK(&from.take() == first);
}
