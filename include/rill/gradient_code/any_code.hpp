#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/gradient_code/dual_code.hpp>
#include <rill/gradient_code/group_code.hpp>

#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// Any of the library's codes, for a choice at run time. Models `GradientCode`.
class any_code {
  public:
    any_code(group_code code) : group_(std::move(code)) {}
    any_code(dual_code code) : dual_(std::move(code)) {}

    int workers() const { return dual_ ? dual_->workers() : group_->workers(); }
    int partitions() const { return dual_ ? dual_->partitions() : group_->partitions(); }
    int stragglers() const { return dual_ ? dual_->stragglers() : group_->stragglers(); }
    int least_survivors() const { return dual_ ? dual_->workers() - dual_->stragglers() : group_->least_survivors(); }
    std::span<const int> partitions_of(int worker) const {
        return dual_ ? dual_->partitions_of(worker) : group_->partitions_of(worker);
    }
    std::span<const double> coefficients_of(int worker) const {
        return dual_ ? dual_->coefficients_of(worker) : group_->coefficients_of(worker);
    }
    bool is_decodable(std::span<const int> survivors) const {
        return dual_ ? dual_->is_decodable(survivors) : group_->is_decodable(survivors);
    }
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        dual_ ? dual_->decoding_row(survivors, row) : group_->decoding_row(survivors, row);
    }
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        return dual_ ? dual_->approximate_row(survivors, row) : group_->approximate_row(survivors, row);
    }

  private:
    std::optional<dual_code> dual_;  // exactly one of the two is set
    std::optional<group_code> group_;
};

static_assert(GradientCode<any_code>);

}}}  // namespace rill::RILL_ABI::gradient_code
