#pragma once

#include <rill/protocol/coded_allocation.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/logistic_regression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace coded_bench {

/// The gradients of ranges of points, each computed once for a model: simulated ranks run one after the other on one
/// thread, and workers that hold the same points at the same model would compute the same bits.
class gradient_cache {
  public:
    explicit gradient_cache(const rill::train::dataset& data)
        : data_(&data), model_(data.columns), rows_(data.rows), weights_(data.rows, 1.0) {
        std::iota(rows_.begin(), rows_.end(), 0U);
    }

    const rill::train::dataset& data() const { return *data_; }

    /// Adds the gradient of the share's part of the mean loss of all points, times its coefficient.
    void add(std::span<const double> model, const rill::data_share& share, std::span<double> sum) {
        if (!std::equal(model.begin(), model.end(), at_.begin(), at_.end())) {
            known_.clear();
            at_.assign(model.begin(), model.end());
        }
        auto& gradient = known_[{share.first, share.last}];
        if (gradient.empty()) {
            gradient.resize(model_.dimension());
            model_.gradient(model, batch(share.first, share.last), gradient);
        }
        const double factor = share.coefficient / static_cast<double>(data_->rows);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * gradient[i];
    }

    std::size_t dimension() const { return model_.dimension(); }

    double loss(std::span<const double> model) {
        return model_.loss(model, batch(0, data_->rows)) / static_cast<double>(data_->rows);
    }

  private:
    rill::train::batch batch(std::size_t first, std::size_t last) const {
        return {*data_, std::span(rows_).subspan(first, last - first),
                std::span(weights_).subspan(first, last - first)};
    }

    const rill::train::dataset* data_;
    rill::train::logistic_regression<double> model_;
    std::vector<std::uint32_t> rows_;
    std::vector<double> weights_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> known_;
    std::vector<double> at_;  ///< the model of the known gradients
};

}  // namespace coded_bench
