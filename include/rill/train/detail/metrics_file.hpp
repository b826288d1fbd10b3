#pragma once

#include <rill/core/bytes.hpp>
#include <rill/train/file.hpp>
#include <rill/train/step_record.hpp>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace rill { inline namespace RILL_ABI { namespace train { namespace detail {

/// A file to which each line is written as a whole, as soon as it is there. Of a line for which there is no room
/// nothing stays.
class metrics_file {
  public:
    metrics_file(std::string path, bool append)
        : path_(std::move(path)), file_(path_, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC)) {
        if (!file_.is_open()) file_failed(path_, "cannot be opened");
    }

    bool is_empty() const {
        struct stat status {};
        return ::fstat(file_.get(), &status) == 0 && status.st_size == 0;
    }

    void write(std::string_view line) {
        const std::size_t done = write_all(file_.get(), std::as_bytes(std::span(line)));
        if (done == line.size()) return;
        const int reason = errno;
        if (done > 0) take_back(static_cast<off_t>(done));
        errno = reason;
        file_failed(path_, "cannot be written");
    }

  private:
    /// Removes a part of a line, behind which the next line would stand. A pipe or a device keeps it. Where a file is
    /// appended to, its position is unknown until something has been written.
    void take_back(off_t bytes) {
        const off_t end = ::lseek(file_.get(), 0, SEEK_CUR) - bytes;
        if (end >= 0 && ::ftruncate(file_.get(), end) == 0) ::lseek(file_.get(), end, SEEK_SET);
    }

    std::string path_;
    descriptor file_;
};

/// The shortest text from which the same number is read.
template <class Number>
void append_number(std::string& line, Number value) {
    char text[32];
    line.append(text, std::to_chars(std::begin(text), std::end(text), value).ptr);
}

/// Calls `visit(name, value)` for each metric of a step, in their order in a file: numbers, then texts.
template <class Visit>
void visit_metrics(const step_record& record, Visit&& visit) {
    const receipt& exchange = record.exchange;
    const auto seconds = [](duration d) { return static_cast<double>(d.ns) / 1e9; };  // rounded once
    visit("step", record.step);
    visit("loss", record.loss);
    visit("seconds", seconds(record.elapsed));
    visit("compute_seconds", seconds(record.phases.compute));
    visit("exchange_seconds", seconds(record.phases.exchange));
    visit("update_seconds", seconds(record.phases.update));
    visit("contributors", exchange.contributors);
    visit("weight", exchange.weight);
    visit("age", exchange.age);
    visit("rounds", exchange.rounds);
    visit("messages_sent", exchange.wire.messages_sent);
    visit("bytes_sent", exchange.wire.bytes_sent);
    visit("messages_received", exchange.wire.messages_received);
    visit("bytes_received", exchange.wire.bytes_received);
    visit("choice", record.choice);
    visit("skipped", record.skipped() ? describe_skip(record) : std::string());
}

}}}}  // namespace rill::RILL_ABI::train::detail
