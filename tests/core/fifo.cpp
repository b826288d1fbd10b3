#include <rill/core/detail/fifo.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

TEST_CASE("fifo: what is added first leaves first") {
    rill::detail::fifo<std::unique_ptr<int>> queue;
    int added = 0, gone = 0;
    for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < round % 7; ++i) queue.push_back(std::make_unique<int>(added++));
        for (int i = 0; i < round % 5 && !queue.empty(); ++i) {
            CHECK(*queue.front() == gone++);
            queue.pop_front();
        }
    }
    while (!queue.empty()) {
        CHECK(*queue.front() == gone++);
        queue.pop_front();
    }
    CHECK(gone == added);
}

TEST_CASE("fifo: its memory stays where as much leaves as is added") {
    rill::detail::fifo<int> queue;
    for (int i = 0; i < 3; ++i) queue.push_back(i);
    for (int i = 3; i < 20; ++i) {
        queue.push_back(i);
        queue.pop_front();
    }
    std::vector<const int*> places;
    for (int i = 20; i < 1000; ++i) {
        queue.push_back(i);
        CHECK(queue.front() == i - 3);
        queue.pop_front();
        if (std::find(places.begin(), places.end(), &queue.front()) == places.end()) places.push_back(&queue.front());
    }
    CHECK(places.size() <= 16);
}

TEST_CASE("fifo: one may leave out of turn") {
    rill::detail::fifo<int> queue;
    for (int i = 0; i < 5; ++i) queue.push_back(i);
    queue.erase(std::find(queue.begin(), queue.end(), 0));
    queue.erase(std::find(queue.begin(), queue.end(), 3));
    CHECK(std::vector<int>(queue.begin(), queue.end()) == std::vector<int>{1, 2, 4});
    for (const int each : {1, 2, 4}) queue.erase(std::find(queue.begin(), queue.end(), each));
    CHECK(queue.empty());
}
