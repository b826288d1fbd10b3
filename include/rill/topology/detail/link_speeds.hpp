#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology::detail {

/// How fast two ranks exchange: the speed of the slower way between them.
class link_speeds {
  public:
    /// Throws `contract_violation`, which names the first entry that is no speed by row and column.
    link_speeds(int size, std::span<const double> matrix) : size_(static_cast<std::size_t>(size)) {
        if (matrix.size() != size_ * size_)
            throw contract_violation(text_of({"rill: topology::bandwidth_matching: ", size, " ranks need ",
                                              size_ * size_, " links, row by row, not ", matrix.size()}));
        for (std::size_t row = 0; row < size_; ++row)
            for (std::size_t column = 0; column < size_; ++column) check(row, column, matrix[row * size_ + column]);
        both_ways_.resize(matrix.size());
        for (std::size_t row = 0; row < size_; ++row)
            for (std::size_t column = 0; column < size_; ++column)
                both_ways_[row * size_ + column] = std::min(matrix[row * size_ + column], matrix[column * size_ + row]);
    }

    /// 0 where there is no link.
    double between(rank_t a, rank_t b) const {
        return both_ways_[static_cast<std::size_t>(a) * size_ + static_cast<std::size_t>(b)];
    }

    void set(rank_t a, rank_t b, double speed) {
        for (const std::size_t at : {static_cast<std::size_t>(a) * size_ + static_cast<std::size_t>(b),
                                     static_cast<std::size_t>(b) * size_ + static_cast<std::size_t>(a)})
            both_ways_[at] = speed;
    }
    /// Row by row.
    const std::vector<double>& all() const { return both_ways_; }

  private:
    static void check(std::size_t row, std::size_t column, double speed) {
        if (row == column || (0 <= speed && speed <= std::numeric_limits<double>::max())) return;
        throw contract_violation(text_of({"rill: topology::bandwidth_matching: the link in row ", row, ", column ",
                                          column, " is ", speed, ", which is no number of bytes per second"}));
    }

    std::size_t size_;
    std::vector<double> both_ways_;
};

}}}  // namespace rill::RILL_ABI::topology::detail
