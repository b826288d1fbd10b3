#pragma once

#include "problem.hpp"

#include <rill/protocol/coded_allocation.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace coded_bench {

/// The gradients of ranges of points, each computed once for a model: simulated ranks run one after the other on one
/// thread, and workers that hold the same points at the same model would compute the same bits.
class gradient_cache {
  public:
    explicit gradient_cache(const problem& of) : of_(&of) {}

    const problem& of() const { return *of_; }

    /// Adds the gradient of the share's part of the mean loss of all points, times its coefficient.
    void add(std::span<const double> model, const rill::data_share& share, std::span<double> sum) {
        if (!std::equal(model.begin(), model.end(), at_.begin(), at_.end())) {
            known_.clear();
            at_.assign(model.begin(), model.end());
        }
        auto& gradient = known_[{share.first, share.last}];
        if (gradient.empty()) {
            gradient.resize(dimension());
            of_->gradient(model, share.first, share.last, gradient);
        }
        const double factor = share.coefficient / static_cast<double>(of_->points);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * gradient[i];
    }

    std::size_t dimension() const { return of_->dimension; }

  private:
    const problem* of_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> known_;
    std::vector<double> at_;  ///< the model of the known gradients
};

}  // namespace coded_bench
