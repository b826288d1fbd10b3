#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/mask.hpp>
#include <rill/kernel/select.hpp>
#include <rill/stream/stream_view.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps each entry with probability `density`. A shared seed makes all ranks choose the same entries, and they choose
/// anew for every operation of a group (`group::resume_at` resumes the choices). Only values are sent, as a dense
/// stream of the chosen entries; all other entries of the result are zero. `bind` gives a model of `Compressor`.
/// Source: SAPS-PSGD, section 3.2.
struct random_mask {
    double density = 0.01;
    std::uint64_t seed = 0;

    static constexpr const char* name = "random_mask";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;  // sent values are not scaled by 1 / density
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector {
      public:
        static constexpr bool is_coordinatewise = false;
        static constexpr bool chooses_alike = true;

        selector(const random_mask& policy, std::size_t dimension)
            : skips_(rill::detail::require_option(policy.density > 0 && policy.density <= 1,
                                                  "compress::random_mask: density", policy.density,
                                                  "above 0 and at most 1")),
              density_(policy.density),
              seed_(policy.seed),
              dimension_(dimension),
              fingerprint_(mix64(rill::fingerprint(random_mask::name), std::bit_cast<std::uint64_t>(policy.density),
                                 policy.seed, dimension)) {
            choose();
        }

        std::size_t dimension() const { return dimension_; }
        std::size_t coded_dimension() const { return mask_.size(); }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            values_.resize(mask_.size());
            kernel::gather(input, std::span<const Index>(mask_), std::span<T>(values_), executor);
            return {{0, values_.size()}, std::span<const T>(values_)};
        }
        void expand(std::span<const T> folded, std::span<T> output) const {
            std::fill(output.begin(), output.end(), T{});
            for (std::size_t i = 0; i < mask_.size(); ++i) output[mask_[i]] = folded[i];
        }
        void write_back(std::span<const T> values, std::span<T> model) const {
            for (std::size_t i = 0; i < mask_.size(); ++i) model[mask_[i]] = values[i];
        }
        void erase_sent(std::span<const T> received, std::span<T> values) const {
            for (std::size_t i = 0; i < mask_.size(); ++i)
                values[mask_[i]] = static_cast<T>(values[mask_[i]] - received[i]);
        }
        std::uint64_t fingerprint() const { return fingerprint_; }
        template <class Visit>
        void visit_options(Visit&& visit) const {
            visit("density", density_);
            visit("seed", seed_);
        }
        void begin(std::uint64_t number) {
            if (number == number_) return;
            number_ = number;
            choose();
        }

      private:
        void choose() {
            mask_.clear();
            kernel::random_mask(random_key{seed_}.derive(number_), skips_, {0, dimension_}, mask_);
        }

        kernel::geometric_skips skips_;
        double density_;
        std::uint64_t seed_;
        std::size_t dimension_;
        std::uint64_t fingerprint_;
        std::uint64_t number_ = 0;
        aligned_vector<Index> mask_;
        aligned_vector<T> values_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<random_mask>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const random_mask&, const random_mask&) = default;
};

}}}  // namespace rill::RILL_ABI::compress
