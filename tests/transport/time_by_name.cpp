#include <rill/transport/time_by_name.hpp>
#include <rill/transport/trace_log.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

void record(rill::trace_log& log, const char* name, std::int64_t begin, std::int64_t end,
            const void* activity = nullptr) {
    log.record({.begin = {begin}, .end = {end}, .name = name, .activity = activity});
}

std::string table(const std::vector<rill::trace_log>& logs) {
    std::string text;
    for (const rill::named_time& row : rill::time_by_name(logs))
        text += std::string(row.name) + " " + std::to_string(row.time.ns) + " " + std::to_string(row.count) + "\n";
    return text;
}

}  // namespace

TEST_CASE("the time of an event excludes the events inside it") {
    std::vector<rill::trace_log> logs(2);
    record(logs[0], "fold", 20, 30);
    record(logs[0], "receive", 30, 35);
    record(logs[0], "all_reduce", 10, 50);
    record(logs[0], "update", 50, 52);
    record(logs[0], "step", 0, 60);
    record(logs[1], "fold", 100, 107);
    CHECK(table(logs) == "all_reduce 25 1\nstep 18 1\nfold 17 2\nreceive 5 1\nupdate 2 1\n");
}

TEST_CASE("events without duration, or with the times of their surroundings, lie inside") {
    std::vector<rill::trace_log> logs(1);
    record(logs[0], "inner", 5, 9);
    record(logs[0], "outer", 5, 9);
    record(logs[0], "look", 5, 5);
    CHECK(table(logs) == "inner 4 1\nlook 0 1\nouter 0 1\n");
}

TEST_CASE("events that begin or end with their surroundings lie inside") {
    std::vector<rill::trace_log> logs(1);
    record(logs[0], "first", 5, 7);
    record(logs[0], "last", 8, 9);
    record(logs[0], "outer", 5, 9);
    CHECK(table(logs) == "first 2 1\nlast 1 1\nouter 1 1\n");
}

TEST_CASE("activities of a rank, and events that overlap without nesting, are counted separately") {
    std::vector<rill::trace_log> logs(1);
    const int other = 0;
    record(logs[0], "compute", 0, 100);
    record(logs[0], "all_reduce", 10, 40, &other);
    record(logs[0], "late", 90, 130);
    CHECK(table(logs) == "compute 100 1\nlate 40 1\nall_reduce 30 1\n");
}

TEST_CASE("without events there are no rows") {
    CHECK(table({}).empty());
    CHECK(table(std::vector<rill::trace_log>(3)).empty());
}
