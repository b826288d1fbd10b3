#pragma once

#include <rill/train/detail/metrics_file.hpp>
#include <rill/train/metrics_options.hpp>
#include <rill/train/step_record.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Writes the record of each step to a file as one JSON object on a line of its own.
///
/// A hook for `trainer`; each rank needs a file of its own. A line is in the file when the call returns. JSON has no
/// NaN and no infinity: they are `null`. Throws `data_error` where the file cannot be opened or written; no part of
/// that line stays in the file. Cost: one write to the file for each step; it allocates nothing but for a skipped step.
class json_metrics {
  public:
    explicit json_metrics(const std::string& path, metrics_options options = {})
        : file_(path, options.append), label_(std::move(options.label)) {}

    void operator()(const step_record& record) {
        line_ = "{";
        if (!label_.empty()) add("label", label_);
        detail::visit_metrics(record, [&](std::string_view name, const auto& value) { add(name, value); });
        line_.back() = '}';
        line_ += '\n';
        file_.write(line_);
    }

  private:
    template <class Value>
    void add(std::string_view name, const Value& value) {
        line_.append("\"").append(name).append("\":");
        if constexpr (std::is_floating_point_v<Value>) {
            if (std::isfinite(value))
                detail::append_number(line_, value);
            else
                line_ += "null";
        } else if constexpr (std::is_arithmetic_v<Value>) {
            detail::append_number(line_, value);
        } else {
            add_text(value);
        }
        line_ += ',';
    }

    void add_text(std::string_view text) {
        line_ += '"';
        for (const char each : text) {
            if (each == '"' || each == '\\') line_ += '\\';
            if (static_cast<unsigned char>(each) >= 0x20)
                line_ += each;
            else
                add_control(each);
        }
        line_ += '"';
    }
    void add_control(char character) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(character));
        line_ += escaped;
    }

    detail::metrics_file file_;
    std::string label_;
    std::string line_;
};

static_assert(StepHook<json_metrics>);

}}}  // namespace rill::RILL_ABI::train
