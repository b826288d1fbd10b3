#pragma once

#include "gradient_cache.hpp"

#include <rill/concept/objective.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coded_allocation.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace coded_bench {

/// The shares of the points on which a rank computes in each step.
struct own_shares {
    std::vector<rill::data_share> shares;

    std::span<const rill::data_share> next() const { return shares; }
    void save(auto&, std::string_view) const {}
    void restore(const auto&, std::string_view) {}
};

/// A problem on shares of points, whose gradients come out of a cache. `computing()` takes a rank's
/// time in each step; it must outlive this.
template <class Computing>
class cached_problem {
  public:
    using scalar = double;
    using batch = std::span<const rill::data_share>;

    cached_problem(gradient_cache& gradients, const Computing& computing)
        : gradients_(&gradients), computing_(&computing), all_{"all", {0, gradients.dimension()}} {}

    std::size_t dimension() const { return gradients_->dimension(); }
    std::span<const rill::layer> layers() const { return {&all_, 1}; }
    void initialise(std::span<double> model, rill::random_key) const { gradients_->of().initialise(model); }

    double loss(std::span<const double> model, const batch&) { return gradients_->of().loss(model); }
    /// The loss is not computed: 0.
    double gradient(std::span<const double> model, const batch& shares, std::span<double> output) {
        std::fill(output.begin(), output.end(), 0.0);
        for (const rill::data_share& share : shares) gradients_->add(model, share, output);
        (*computing_)();
        return 0;
    }

  private:
    gradient_cache* gradients_;
    const Computing* computing_;
    rill::layer all_;
};

}  // namespace coded_bench
