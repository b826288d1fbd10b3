#include "computing.hpp"

#include "measure_exchange.hpp"
#include "predict_exchange.hpp"

#include <rill/compress/top_k.hpp>
#include <rill/cost/union_size.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace plan {

namespace {

constexpr int most_ranks = 8;
constexpr std::size_t most_entries = std::size_t{1} << 23;  // of all ranks: what a second is enough for
constexpr int repetitions = 3;

bool measures(const arguments& chosen) { return !chosen.select || !chosen.fold; }

/// Measures on gradients of its own.
class laboratory {
  public:
    laboratory(int ranks, std::size_t size, double density)
        : density_(density), all_(random_gradients(ranks, size)), alone_{all_.front()} {
        for (const compressor& how : compressors)
            own_.push_back(measure_exchange(rill::topology::ring{}, how, density_, alone_, free_, repetitions));
    }

    /// What a rank takes where there is no other.
    double own(const compressor& how) const { return own_[static_cast<std::size_t>(how.how)]; }

    template <class Shape>
    double per_byte(const Shape& shape, const compressor& how) const {
        const int ranks = static_cast<int>(all_.size());
        const std::size_t size = alone_.front().size();
        const auto sent = static_cast<double>(rill::compress::top_k{.density = density_}.entries(size));
        const rill::cost::uniform_density entries{std::min(1.0, sent / static_cast<double>(size))};
        const double seconds = measure_exchange(shape, how, density_, all_, free_, repetitions) - own(how);
        return std::max(0.0, seconds) / bytes_in_a_row(shape, how, ranks, size, entries);
    }

  private:
    rill::simulated::network free_ = network_of(0, 0);
    double density_;
    gradient_table all_, alone_;
    std::vector<double> own_{};
};

}  // namespace

computing_costs costs_of(const arguments& chosen) {
    computing_costs found;
    std::optional<laboratory> measured;
    double scale = 1;
    if (measures(chosen)) {
        found.ranks = std::min(chosen.ranks, most_ranks);
        found.size = std::min(chosen.model_size, most_entries / static_cast<std::size_t>(found.ranks));
        scale = static_cast<double>(chosen.model_size) / static_cast<double>(found.size);
        measured.emplace(found.ranks, found.size, chosen.density);
    }
    for_each_way([&](const auto& shape, const compressor& how) {
        const double given = how.sparse ? chosen.select.value_or(0) : 0;
        found.ways.push_back({.own = chosen.select ? given : scale * measured->own(how),
                              .per_byte = chosen.fold ? 1 / *chosen.fold : measured->per_byte(shape, how)});
    });
    return found;
}

}  // namespace plan
