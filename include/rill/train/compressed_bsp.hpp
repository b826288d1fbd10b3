#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/core/bytes.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill::inline RILL_ABI::train {

/// A `compressed_bsp` bound to one worker.
template <class Policy, std::floating_point T>
class bound_compressed_bsp {
  public:
    bound_compressed_bsp(const Policy& policy, std::size_t dimension)
        : policy_(policy),
          codec_(policy.codec.template bind<T>(dimension)),
          optimizer_(policy.optimizer.template bind<T>(dimension)),
          update_(dimension) {}

    const auto& codec() const { return codec_; }

    template <class Group>
    receipt step(Group& workers, std::span<T> parameters, std::span<T> gradient, std::uint64_t number,
                 const contribution& own) {
        if (own.weight > 0) {
            policy_.clip.apply(gradient);
            const T rate = static_cast<T>(policy_.rate.rate(number));
            for (T& slope : gradient) slope *= rate;
        }
        const auto is_complete = [&](const receipt& done) { return done.contributors == workers.size(); };
        const receipt done = all_reduce(workers, gradient, update_, codec_, aggregate::mean{}, own, is_complete);
        [[maybe_unused]] const auto updating = named_span(workers.net(), "update");
        if (is_complete(done)) optimizer_.step(parameters, std::span<const T>(update_), 1);
        return done;
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        optimizer_.save(out, prefix);
        if constexpr (requires { codec_.save(out, std::string()); }) codec_.save(out, std::string(prefix) + "codec");
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        optimizer_.restore(in, prefix);
        if constexpr (requires { codec_.restore(in, std::string()); })
            codec_.restore(in, std::string(prefix) + "codec");
    }

  private:
    Policy policy_;
    decltype(std::declval<const Policy&>().codec.template bind<T>(std::size_t{})) codec_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
    aligned_vector<T> update_;
};

/// Bulk-synchronous descent along compressed steps: what travels is the gradient times the rate, through `codec`, whose
/// error feedback so remembers steps, not slopes, when the rate changes.
///
/// The optimizer runs on the mean of what has arrived, at rate 1: its momentum is the same on all ranks, and what the
/// codec leaves out waits for its turn without it. That wait is a delay already: at a density of 1 % a momentum of 0.7
/// reaches what 0.9 does not, with the same peak / (1 - momentum). An optimizer's weight decay is not multiplied by
/// `rate`.
/// Where a step is skipped, the other ranks' contributions to it return to their codecs.
/// Cost per step: one all-reduce of compressed streams over `topology`. Memory: the optimizer's, the codec's, one
/// update. Source: Renggli et al., SparCML, SC 2019, Algorithm 1, with a mean for the sum.
template <Topology Shape, class Codec, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct compressed_bsp {
    Shape topology{};
    Codec codec{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float>
    bound_compressed_bsp<compressed_bsp, T> bind(std::size_t dimension) const {
        return {*this, dimension};
    }
    friend constexpr bool operator==(const compressed_bsp&, const compressed_bsp&) = default;
};

template <class S, class C, class D, class R>
compressed_bsp(S, C, D, R) -> compressed_bsp<S, C, D, R>;
template <class S, class C, class D, class R, class P>
compressed_bsp(S, C, D, R, P) -> compressed_bsp<S, C, D, R, P>;

}  // namespace rill::inline RILL_ABI::train
