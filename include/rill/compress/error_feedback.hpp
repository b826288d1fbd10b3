#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/serial.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/kernel/magnitude.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rill::inline RILL_ABI::compress {

/// A codec that adds to every contribution what earlier ones left out.
template <class Codec, Element T>
class error_feedback_codec {
  public:
    using index_type = typename Codec::index_type;

    static constexpr bool is_lossless = Codec::is_lossless;
    static constexpr bool is_unbiased = Codec::is_unbiased;
    static constexpr bool is_contractive = Codec::is_contractive;
    static constexpr bool has_lossless_copy = Codec::has_lossless_copy;
    static constexpr bool is_coordinatewise = Codec::is_coordinatewise;

    explicit error_feedback_codec(Codec inner) : inner_(std::move(inner)), residual_(inner_.dimension(), T{}) {}

    std::size_t dimension() const { return inner_.dimension(); }
    void begin(std::uint64_t number) { inner_.begin(number); }
    std::size_t coded_dimension() { return inner_.coded_dimension(); }
    decltype(auto) codings() const { return inner_.codings(); }

    /// What has been left out so far, N elements; between `encode` and `commit`, what is being sent as well.
    std::span<const T> residual() const { return residual_; }

    /// From here on, inputs count `factor` times, a finite number: what a loop along scaled steps would else spend a
    /// pass on.
    void scale_inputs(T factor) {
        RILL_EXPECTS(is_finite(factor), "error_feedback: inputs count a finite number of times");
        scale_ = factor;
    }

    template <Executor Exec = serial>
    auto encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        require_finite_sums(input, executor);
        most_ = kernel::add_scaled<T>(residual_, input, scale_, residual_, executor);
        pending_ = false;  // where the inner codec throws, nothing is on its way
        const auto view = encode_with(inner_, std::span<const T>(residual_), executor);
        pending_ = true;
        return view;
    }

    void decode(std::span<const T> folded, std::span<T> output)
        requires(!is_coordinatewise)
    {
        inner_.decode(folded, output);
    }

    /// The contribution is in the result: the residual is what was not sent, before any rounding of values.
    void commit() {
        if (pending_) inner_.erase_sent(residual_);
        pending_ = false;
        inner_.commit();
    }

    /// The contribution is in no result: all of it stays in the residual.
    void rollback() {
        pending_ = false;
        inner_.rollback();
    }

    /// Stores `residual()` as a section of `to`, a `train::checkpoint_writer` or alike.
    template <class Writer>
    void save(Writer& to, const std::string& name) const {
        to.add(name + ".residual", std::span<const T>(residual_));
    }
    template <class Reader>
    void restore(const Reader& from, const std::string& name) {
        from.read(name + ".residual", std::span<T>(residual_));
        most_ = kernel::largest<T>(residual_);
        pending_ = false;
    }

  private:
    static bool is_finite(T value) {
        return !std::floating_point<T> || kernel::magnitude(value) < kernel::largest_magnitude<T>;
    }

    /// Looks before the residual changes, and no closer than it must: none of the sums can be larger than the largest
    /// magnitudes together.
    template <Executor Exec>
    void require_finite_sums([[maybe_unused]] std::span<const T> input, [[maybe_unused]] const Exec& executor) const {
        if constexpr (std::floating_point<T>) {
            const T most_of_input = std::bit_cast<T>(kernel::largest(input, executor));
            const T product = scale_ * most_of_input;
            if (is_finite(std::bit_cast<T>(kernel::magnitude(product)) + std::bit_cast<T>(most_))) return;
            if (const auto bad = kernel::find_non_finite_sum<T>(residual_, input, scale_))
                throw invalid_value("the gradient is not finite at coordinate " + std::to_string(*bad));
        }
    }

    Codec inner_;
    aligned_vector<T> residual_;
    kernel::magnitude_key<T> most_ = 0;  ///< no magnitude in the residual is larger
    T scale_{1};
    bool pending_ = false;
};

/// Error feedback (SparCML, Algorithm 1): each worker adds to its next contribution what the compressor left out, so
/// that no gradient mass is lost. Transactional: what is sent leaves the residual only when the contribution is in the
/// result; a failed, late or skipped contribution stays in it, and must not be given again. Sent plus residual equals
/// input plus residual before, bit for bit; what quantisation rounds off is not fed back. Memory: N elements.
template <class Policy>
struct error_feedback {
    Policy compressor{};

    static constexpr const char* name = "error_feedback";

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        using inner = decltype(compressor.template bind<T, Index>(dimension));
        static_assert(inner::is_contractive,
                      "rill::compress::error_feedback: the compressor is not contractive, so the residual would grow "
                      "without bound; use top_k, bucket_top_k, threshold or random_mask");
        return error_feedback_codec<inner, T>(compressor.template bind<T, Index>(dimension));
    }
    friend constexpr bool operator==(const error_feedback&, const error_feedback&) = default;
};

template <class Policy>
error_feedback(Policy) -> error_feedback<Policy>;

}  // namespace rill::inline RILL_ABI::compress
