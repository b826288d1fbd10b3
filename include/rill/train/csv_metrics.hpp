#pragma once

#include <rill/train/detail/metrics_file.hpp>
#include <rill/train/metrics_options.hpp>
#include <rill/train/step_record.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Writes the record of each step to a file as one line of comma-separated values, below a line of names.
///
/// A hook for `trainer`; each rank needs a file of its own. A line is in the file when the call returns. Texts that
/// hold commas, quotes or line breaks are quoted (RFC 4180, with `\n`). Throws `data_error` where the file cannot be
/// opened or written; no part of that line stays in the file. Cost: one write to the file for each step; it allocates
/// nothing but for a skipped step.
class csv_metrics {
  public:
    explicit csv_metrics(const std::string& path, metrics_options options = {})
        : file_(path, options.append), label_(std::move(options.label)) {
        if (file_.is_empty()) write_names();
    }

    void operator()(const step_record& record) {
        line_.clear();
        if (!label_.empty()) add(label_);
        detail::visit_metrics(record, [&](std::string_view, const auto& value) { add(value); });
        end_line();
    }

  private:
    void write_names() {
        if (!label_.empty()) add(std::string_view("label"));
        detail::visit_metrics({}, [&](std::string_view name, const auto&) { add(name); });
        end_line();
    }
    void end_line() {
        line_.back() = '\n';
        file_.write(line_);
    }

    template <class Number>
        requires std::is_arithmetic_v<Number>
    void add(Number value) {
        detail::append_number(line_, value);
        line_ += ',';
    }
    void add(std::string_view text) {
        if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
            line_.append(text);
        } else {
            line_ += '"';
            for (const char each : text) line_.append(each == '"' ? 2 : 1, each);
            line_ += '"';
        }
        line_ += ',';
    }

    detail::metrics_file file_;
    std::string label_;
    std::string line_;
};

static_assert(StepHook<csv_metrics>);

}}}  // namespace rill::RILL_ABI::train
