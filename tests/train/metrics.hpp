// A record with a value of its own in each metric, and files of metrics.
#pragma once

#include "../support/scratch.hpp"

#include <rill/train/file.hpp>
#include <rill/train/step_record.hpp>

#include <string>

inline rill::train::step_record full_record() {
    return {
        .step = 3,
        .loss = 0.5,
        .exchange = {.contributors = 4,
                     .weight = 3.5,
                     .age = 2,
                     .rounds = 6,
                     .wire = {.messages_sent = 7, .bytes_sent = 800, .messages_received = 9, .bytes_received = 1000}},
        .elapsed = rill::milliseconds(10),
        .phases = {
            .compute = rill::milliseconds(5), .exchange = rill::milliseconds(4), .update = rill::microseconds(1)}};
}

inline std::string text_of(const std::string& path) {
    const auto bytes = rill::train::read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
