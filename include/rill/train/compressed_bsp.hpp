#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/core/bytes.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
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
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `compressed_bsp` bound to one worker.
template <class Policy, std::floating_point T>
class bound_compressed_bsp {
  public:
    bound_compressed_bsp(const Policy& policy, std::size_t dimension)
        : policy_(policy),
          codec_(policy.codec.template bind<T>(dimension)),
          optimizer_(policy.optimizer.template bind<T>(dimension)) {
        if constexpr (!moves_along_stream) update_.resize(dimension);
    }

    const auto& codec() const { return codec_; }

    template <class Group>
    receipt step(Group& workers, std::span<T> parameters, std::span<T> gradient, std::uint64_t number,
                 const contribution& own) {
        if (own.weight > 0) {
            policy_.clip.apply(gradient);
            scale(gradient, static_cast<T>(policy_.rate.rate(number)));
        }
        const auto is_complete = [&](const receipt& done) { return done.contributors == workers.size(); };
        const receipt done = all_reduce(workers, gradient, update_, codec_, aggregate::mean{}, own, is_complete);
        [[maybe_unused]] const auto updating = named_span(workers.net(), "update");
        if (is_complete(done)) move(parameters);
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
    using codec_type = decltype(std::declval<const Policy&>().codec.template bind<T>(std::size_t{}));
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    using index_type = typename codec_type::index_type;

    /// Whether what has arrived need not be spread over all coordinates first.
    static constexpr bool moves_along_stream =
        codec_type::is_coordinatewise &&
        requires(optimizer_type& optimizer, std::span<T> parameters, const stream_view<T, index_type>& update) {
            optimizer.step(parameters, update, 1.0);
        };
    using update_type = std::conditional_t<moves_along_stream, stream<T, index_type>, aligned_vector<T>>;

    /// By the codec where it can, in the pass that it makes anyway.
    void scale(std::span<T> gradient, T rate) {
        if constexpr (requires { codec_.scale_inputs(rate); })
            codec_.scale_inputs(rate);
        else
            for (T& slope : gradient) slope *= rate;
    }

    void move(std::span<T> parameters) {
        if constexpr (moves_along_stream)
            optimizer_.step(parameters, update_.view(), 1);
        else
            optimizer_.step(parameters, std::span<const T>(update_), 1);
    }

    Policy policy_;
    codec_type codec_;
    optimizer_type optimizer_;
    update_type update_;
};

/// Bulk-synchronous descent along compressed steps: what travels is the gradient times the rate, through `codec`, whose
/// error feedback so remembers steps, not slopes, when the rate changes.
///
/// The optimizer runs on the mean of what has arrived, at rate 1: its momentum is the same on all ranks, and what the
/// codec leaves out waits for its turn without it. That wait is a delay already: at a density of 1 % a momentum of 0.7
/// reaches what 0.9 does not, with the same peak / (1 - momentum). An optimizer's weight decay is not multiplied by
/// `rate`. Where a step is skipped, the other ranks' contributions to it return to their codecs.
/// Cost per step: one all-reduce of compressed streams over `topology`. Memory: the optimizer's, the codec's, one
/// update: of the entries that arrived, where the optimizer takes a stream. Source: Renggli et al., SparCML, SC 2019,
/// Algorithm 1, with a mean for the sum.
template <Topology Shape, class Codec, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct compressed_bsp {
    static_assert(
        Descent::is_linear,
        "rill::train::compressed_bsp: a step of the optimizer (adam) does not scale with the gradient, and what "
        "travels is the gradient times the rate; use train::sgd or train::bsp");

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

}}}  // namespace rill::RILL_ABI::train
