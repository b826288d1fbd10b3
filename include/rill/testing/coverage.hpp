#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Counts runs in a grid that has an axis for each property of a run. Memory: two numbers for each cell.
class coverage {
  public:
    struct axis {
        std::string name;
        std::vector<std::string> values;
    };

    explicit coverage(std::vector<axis> axes) : axes_(std::move(axes)) {
        std::size_t cells = 1;
        for (const axis& each : axes_) cells *= each.values.size();
        cells_.resize(cells);
    }

    /// Counts a run of the cell, which is given by the number of its value on each axis. `failed`: the run showed a
    /// fault.
    void count(std::initializer_list<std::size_t> cell, bool failed) {
        RILL_EXPECTS(cell.size() == axes_.size(), "coverage: a cell has a value on each axis");
        std::size_t at = 0;
        const axis* along = axes_.data();
        for (const std::size_t value : cell) {
            RILL_EXPECTS(value < along->values.size(), "coverage: no such value on an axis");
            at = at * (along++)->values.size() + value;
        }
        ++cells_[at].runs;
        cells_[at].failed += failed ? 1 : 0;
    }

    std::size_t cells() const { return cells_.size(); }
    std::uint64_t runs() const {
        std::uint64_t sum = 0;
        for (const contribution_sum& each : cells_) sum += each.runs;
        return sum;
    }

    /// Names the first few cells without a run, and their number if there are more; empty if every cell has one.
    std::string never_run() const {
        constexpr std::size_t named = 10;
        std::string text;
        std::size_t missing = 0;
        for (std::size_t at = 0; at < cells_.size(); ++at)
            if (cells_[at].runs == 0 && ++missing <= named) text += name_of(at) + "\n";
        return missing > named ? text + "... " + std::to_string(missing) + " cells in all\n" : text;
    }

    /// Returns a table of runs by two axes, summed over the others: `runs/failed`, or `runs` where none failed.
    std::string table(std::size_t rows, std::size_t columns) const {
        RILL_EXPECTS(rows < axes_.size() && columns < axes_.size() && rows != columns, "coverage: no such axes");
        std::vector<std::vector<std::string>> text(1, {axes_[rows].name + " \\ " + axes_[columns].name});
        for (const std::string& value : axes_[columns].values) text[0].push_back(value);
        const auto sums = by(rows, columns);
        for (std::size_t r = 0; r < axes_[rows].values.size(); ++r) {
            text.push_back({axes_[rows].values[r]});
            for (const contribution_sum& sum : sums[r])
                text.back().push_back(std::to_string(sum.runs) +
                                      (sum.failed > 0 ? "/" + std::to_string(sum.failed) : ""));
        }
        return aligned(text);
    }

  private:
    struct contribution_sum {
        std::uint64_t runs = 0;
        std::uint64_t failed = 0;
    };

    std::size_t value_of(std::size_t cell, std::size_t wanted) const {
        for (std::size_t i = axes_.size() - 1; i > wanted; --i) cell /= axes_[i].values.size();
        return cell % axes_[wanted].values.size();
    }
    std::string name_of(std::size_t cell) const {
        std::string text;
        for (std::size_t i = 0; i < axes_.size(); ++i)
            text += (i == 0 ? "" : ", ") + axes_[i].name + " " + axes_[i].values[value_of(cell, i)];
        return text;
    }

    std::vector<std::vector<contribution_sum>> by(std::size_t rows, std::size_t columns) const {
        std::vector<std::vector<contribution_sum>> sums(axes_[rows].values.size(),
                                                        std::vector<contribution_sum>(axes_[columns].values.size()));
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            contribution_sum& sum = sums[value_of(at, rows)][value_of(at, columns)];
            sum.runs += cells_[at].runs;
            sum.failed += cells_[at].failed;
        }
        return sums;
    }

    static std::string aligned(const std::vector<std::vector<std::string>>& text) {
        std::vector<std::size_t> widths(text[0].size());
        for (const auto& row : text)
            for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
        std::string all;
        for (const auto& row : text) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::string gap(widths[i] - row[i].size(), ' ');
                all += i == 0 ? row[i] + gap : "  " + gap + row[i];
            }
            all += "\n";
        }
        return all;
    }

    std::vector<axis> axes_;
    std::vector<contribution_sum> cells_;
};

}}}  // namespace rill::RILL_ABI::testing
