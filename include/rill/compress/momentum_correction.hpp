#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/stream/stream_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// A codec that hands a velocity to the inner one in place of the gradient. Models `Compressor`.
template <class Codec, std::floating_point T>
class momentum_correction_codec {
  public:
    using index_type = typename Codec::index_type;

    static constexpr bool is_lossless = Codec::is_lossless;
    static constexpr bool is_unbiased = Codec::is_unbiased;
    static constexpr bool is_contractive = false;  // what is sent depends on earlier inputs more than on this one
    static constexpr bool has_lossless_copy = Codec::has_lossless_copy;
    static constexpr bool is_coordinatewise = true;
    static constexpr coding_set possible_codings = codings_of<Codec>;

    momentum_correction_codec(Codec inner, T momentum)
        : inner_(std::move(inner)),
          momentum_(momentum),
          velocity_(inner_.dimension(), T{}),
          next_(inner_.dimension(), T{}) {}

    std::size_t dimension() const { return inner_.dimension(); }
    void begin(std::uint64_t number) {
        is_pending_ = false;
        inner_.begin(number);
    }
    std::size_t coded_dimension() { return inner_.coded_dimension(); }
    decltype(auto) codings() const { return inner_.codings(); }
    std::uint64_t fingerprint() const { return fingerprint_of(inner_); }

    /// The codec that keeps what is not sent.
    const Codec& inner() const { return inner_; }
    Codec& inner() { return inner_; }
    /// The velocity of each coordinate, N elements: 0 where the coordinate was sent last.
    std::span<const T> velocity() const { return span_of(velocity_); }

    /// Multiplies what is added to the residual, and not the velocity, so that a rate may change.
    void scale_inputs(T factor)
        requires ScalingCompressor<Codec, T>
    {
        inner_.scale_inputs(factor);
    }

    template <Executor Exec = serial>
    stream_view<T, index_type> encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        is_pending_ = false;
        kernel::add_scaled<T>(input, velocity(), momentum_, span_of(next_), executor);
        sent_ = encode_with(inner_, std::span<const T>(span_of(next_)), executor);
        velocity_.swap(next_);
        is_pending_ = true;
        return sent_;
    }

    bool learns_received() const { return rill::learns_received<stream_view<T, index_type>>(inner_); }
    void take_received(const stream_view<T, index_type>& piece)
        requires LearnsReceived<Codec, stream_view<T, index_type>>
    {
        inner_.take_received(piece);
    }

    /// Coordinates that are in the result begin anew, without a velocity.
    void commit() {
        if (is_pending_) stop_sent();
        is_pending_ = false;
        inner_.commit();
    }
    /// The gradient is in the residual and in the velocity, as it is where a coordinate is not chosen.
    void rollback() {
        is_pending_ = false;
        inner_.rollback();
    }

    template <class Writer>
    void save(Writer& to, const std::string& name) const {
        inner_.save(to, name);
        to.add(name + ".velocity", velocity());
    }
    template <class Reader>
    void restore(const Reader& from, const std::string& name) {
        aligned_vector<T> velocity(velocity_.size());
        from.read(name + ".velocity", span_of(velocity));
        inner_.restore(from, name);
        velocity_.swap(velocity);
        is_pending_ = false;
    }

  private:
    void stop_sent() {
        if (sent_.is_dense())
            std::fill(velocity_.begin(), velocity_.end(), T{});
        else
            for (const index_type i : sent_.indices()) velocity_[i] = T{};
    }

    Codec inner_;
    T momentum_;
    aligned_vector<T> velocity_;
    aligned_vector<T> next_;  ///< the new velocity while the inner codec can still refuse it
    stream_view<T, index_type> sent_{};
    bool is_pending_ = false;
};

/// Momentum correction with factor masking (Lin et al., Deep Gradient Compression, ICLR 2018, sections 3.1 and 3.2):
/// each worker keeps a velocity u = momentum · u + gradient, and the compressor gets u in place of the gradient. So an
/// entry that waits in the residual gathers the momentum that it would have had. Where an entry is in the result, its
/// velocity begins anew at 0.
///
/// `compressor` keeps what it does not send, in the input's own coordinates: `error_feedback` over `top_k`,
/// `bucket_top_k` or `threshold`. The optimizer that takes the result needs no momentum of its own. `bind` gives a
/// model of `Compressor` for floating-point elements. What is sent plus the new residual is the velocity plus the
/// residual before. Memory: 2N elements besides the compressor's. Cost: one pass over three vectors.
template <class Policy>
struct momentum_correction {
    Policy compressor{};
    double momentum = 0.9;  ///< in [0, 1)

    static constexpr const char* name = "momentum_correction";

    template <std::floating_point T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        using inner = decltype(compressor.template bind<T, Index>(dimension));
        static_assert(ResidualCompressor<inner> && inner::is_coordinatewise,
                      "rill::compress::momentum_correction: the compressor does not keep what it leaves out, or sends "
                      "other coordinates than its input's; use error_feedback over top_k, bucket_top_k or threshold");
        rill::detail::require_option(momentum >= 0 && momentum < 1, "compress::momentum_correction: momentum", momentum,
                                     "in [0, 1)");
        return momentum_correction_codec<inner, T>(compressor.template bind<T, Index>(dimension),
                                                   static_cast<T>(momentum));
    }
    friend constexpr bool operator==(const momentum_correction&, const momentum_correction&) = default;
};

template <class Policy>
momentum_correction(Policy) -> momentum_correction<Policy>;
template <class Policy>
momentum_correction(Policy, double) -> momentum_correction<Policy>;

}}}  // namespace rill::RILL_ABI::compress
