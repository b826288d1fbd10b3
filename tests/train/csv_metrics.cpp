#include <rill/train/csv_metrics.hpp>

#include "../support/file_limit.hpp"
#include "jobs.hpp"
#include "metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

using namespace rill;
using namespace rill::train;

namespace {
const std::string names =
    "step,loss,seconds,compute_seconds,exchange_seconds,update_seconds,contributors,weight,age,rounds,messages_sent,"
    "bytes_sent,messages_received,bytes_received,choice,skipped\n";
const std::string written = "3,0.5,0.01,0.005,0.004,1e-06,4,3.5,2,6,7,800,9,1000,,\n";
}  // namespace

TEST_CASE("csv_metrics: a line of names, then one for each step, there as soon as it is written") {
    const scratch_directory here;
    csv_metrics write(here / "steps.csv");
    CHECK(text_of(here / "steps.csv") == names);
    write(full_record());
    CHECK(text_of(here / "steps.csv") == names + written);
    csv_metrics moved = std::move(write);
    moved(full_record());
    CHECK(text_of(here / "steps.csv") == names + written + written);
    const csv_metrics again(here / "steps.csv");
    CHECK(text_of(here / "steps.csv") == names);
}

TEST_CASE("csv_metrics: quotes texts that need it, and has a column for the label") {
    const scratch_directory here;
    csv_metrics write(here / "steps.csv", {.label = "a \"b\", c\nd"});
    step_record skipped = full_record();
    skipped.loss = std::numeric_limits<double>::quiet_NaN();
    skipped.invalid = {{.rank = 1, .coordinate = 2}, {.rank = 3, .coordinate = 4}};
    write(skipped);
    CHECK(text_of(here / "steps.csv") ==
          "label," + names + "\"a \"\"b\"\", c\nd\",3,nan,0.01,0.005,0.004,1e-06,4,3.5,2,6,7,800,9,1000,,\"" +
              describe_skip(skipped) + "\"\n");
}

TEST_CASE("csv_metrics: appends without names to what is there") {
    const scratch_directory here;
    csv_metrics(here / "steps.csv", {.append = true})(full_record());
    csv_metrics(here / "steps.csv", {.append = true})(full_record());
    CHECK(text_of(here / "steps.csv") == names + written + written);
}

TEST_CASE("csv_metrics: a file that cannot be opened or written is named") {
    const scratch_directory here;
    const std::string absent = here / "absent/steps.csv";
    CHECK(message_of<data_error>([&] { csv_metrics{absent}; }) ==
          "rill: " + absent + ": cannot be opened: No such file or directory");
    CHECK(message_of<data_error>([] { csv_metrics{"/dev/full"}; }) ==
          "rill: /dev/full: cannot be written: No space left on device");
}

TEST_CASE("csv_metrics: of a line for which there is no room nothing stays, and the next one stands by itself") {
    const scratch_directory here;
    const std::string path = here / "steps.csv";
    csv_metrics write(path);
    write(full_record());
    std::string message;
    {
        const file_limit full(names.size() + written.size() + 10);
        message = message_of<data_error>([&] { write(full_record()); });
    }
    CHECK(message == "rill: " + path + ": cannot be written: File too large");
    CHECK(text_of(path) == names + written);
    write(full_record());
    csv_metrics(path, {.append = true})(full_record());
    CHECK(text_of(path) == names + written + written + written);
}

TEST_CASE("csv_metrics: appending to a file for which there is no more room leaves what it holds") {
    const scratch_directory here;
    const std::string path = here / "steps.csv";
    csv_metrics{path}(full_record());
    for (const std::size_t room : {0U, 10U}) {
        csv_metrics write(path, {.append = true});
        const file_limit full(names.size() + written.size() + room);
        CHECK(message_of<data_error>([&] { write(full_record()); }) ==
              "rill: " + path + ": cannot be written: File too large");
        CHECK(text_of(path) == names + written);
    }
}

TEST_CASE("csv_metrics: gets each step of a trainer") {
    const scratch_directory here;
    in_process::run(2, [&](auto& net) {
        const std::string path = here / ("rank-" + std::to_string(net.rank())).c_str();
        trainer training{net,
                         jobs::spoilt_perceptron(net.rank(), {{.rank = 1, .step = 1, .coordinate = 7}}),
                         minibatches{jobs::data(), {.batch = 8, .rank = net.rank(), .ranks = 2}},
                         jobs::dense_plan,
                         {},
                         csv_metrics(path)};
        for (int step = 0; step < 3; ++step) training.step();
        const std::string text = text_of(path);
        CHECK(std::count(text.begin(), text.end(), '\n') == 4);
        CHECK(has(text, "step 1 skipped: the gradient of rank 1 is not finite at coordinate 7\n2,"));
    });
}
