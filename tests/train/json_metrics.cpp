#include <rill/train/json_metrics.hpp>

#include "metrics.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace rill;
using namespace rill::train;

TEST_CASE("json_metrics: an object on each line, there as soon as it is written") {
    const scratch_directory here;
    json_metrics write(here / "steps.jsonl");
    write(full_record());
    const std::string line =
        R"({"step":3,"loss":0.5,"seconds":0.01,"compute_seconds":0.005,"exchange_seconds":0.004,)"
        R"("update_seconds":1e-06,"contributors":4,"weight":3.5,"age":2,"rounds":6,"messages_sent":7,)"
        R"("bytes_sent":800,"messages_received":9,"bytes_received":1000,"choice":"","skipped":""})"
        "\n";
    CHECK(text_of(here / "steps.jsonl") == line);
    write(full_record());
    CHECK(text_of(here / "steps.jsonl") == line + line);
    json_metrics(here / "steps.jsonl", {.append = true})(full_record());
    CHECK(text_of(here / "steps.jsonl") == line + line + line);
}

TEST_CASE("json_metrics: escapes texts; what is not finite is null") {
    const scratch_directory here;
    step_record record;
    record.loss = -std::numeric_limits<double>::infinity();
    json_metrics(here / "steps.jsonl", {.label = "a \"b\" \\ c\nd\x01"})(record);
    CHECK(has(text_of(here / "steps.jsonl"), R"({"label":"a \"b\" \\ c\u000ad\u0001","step":0,"loss":null,)"));
    record.loss = std::numeric_limits<double>::quiet_NaN();
    record.invalid = {{.rank = 1, .coordinate = 2}};
    json_metrics(here / "steps.jsonl")(record);
    CHECK(has(text_of(here / "steps.jsonl"), R"("loss":null,)"));
    CHECK(has(text_of(here / "steps.jsonl"), "\"skipped\":\"" + describe_skip(record) + "\"}\n"));
}

TEST_CASE("json_metrics: a file that cannot be opened or written is named") {
    const scratch_directory here;
    const std::string absent = here / "absent/steps.jsonl";
    CHECK(message_of<data_error>([&] { json_metrics{absent}; }) ==
          "rill: " + absent + ": cannot be opened: No such file or directory");
    json_metrics full("/dev/full");
    CHECK(message_of<data_error>([&] { full(full_record()); }) ==
          "rill: /dev/full: cannot be written: No space left on device");
}
