#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/error.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/text.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/stream/stream_view.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// What is on its way of a codec, until it is committed. A copy of the codec has nothing on its way.
template <Element T, IndexType Index>
struct sent_view {
    stream_view<T, Index> view{};
    bool is_pending = false;

    sent_view() = default;
    sent_view(const sent_view&) {}
    sent_view(sent_view&& other) noexcept : view(other.view), is_pending(other.is_pending) { other.is_pending = false; }
    sent_view& operator=(sent_view other) noexcept {
        view = other.view;
        is_pending = other.is_pending;
        return *this;
    }
    ~sent_view() = default;
};

/// A codec that adds to every contribution what earlier ones left out. Models `Compressor`.
template <class Codec, Element T>
class error_feedback_codec {
  public:
    using index_type = typename Codec::index_type;

    static constexpr bool is_lossless = Codec::is_lossless;
    static constexpr bool is_unbiased = Codec::is_unbiased;
    static constexpr bool is_contractive = false;  // it sends the residual also where the input is zero
    static constexpr bool has_lossless_copy = Codec::has_lossless_copy;
    static constexpr bool is_coordinatewise = Codec::is_coordinatewise;
    static constexpr coding_set possible_codings = codings_of<Codec>;

    explicit error_feedback_codec(Codec inner, bool unbiased_rounding = false)
        : inner_(std::move(inner)), residual_(inner_.dimension(), T{}), unbiased_rounding_(unbiased_rounding) {}
    /// Feeds back what the codec leaves out that `policy` binds to.
    template <class Policy>
    [[gnu::noinline]] error_feedback_codec(const Policy& policy, std::size_t dimension, bool unbiased_rounding)
        : inner_(policy.template bind<T, index_type>(dimension)),
          residual_(dimension, T{}),
          unbiased_rounding_(unbiased_rounding) {
        RILL_EXPECTS(codings().contribution.is_contractive(),
                     "error_feedback: the value coding of contributions is not contractive, so the residual would grow "
                     "without bound");
    }

    std::size_t dimension() const { return inner_.dimension(); }
    void begin(std::uint64_t number) {
        sent_.is_pending = false;  // of an operation that has ended without a commit: all of it stays
        inner_.begin(number);
    }
    std::size_t coded_dimension() { return inner_.coded_dimension(); }
    decltype(auto) codings() const { return inner_.codings(); }
    std::uint64_t fingerprint() const { return fingerprint_of(inner_); }

    /// What has been left out so far, N elements. Between `encode` and `commit` it includes what is being sent.
    std::span<const T> residual() const { return span_of(residual_); }

    /// Multiplies all inputs from now on by `factor`, a finite number. A loop that scales its steps thus saves a pass.
    void scale_inputs(T factor) {
        RILL_EXPECTS(is_finite(factor), "error_feedback: inputs count a finite number of times");
        scale_ = factor;
    }

    /// Adds what another rank has left out, N elements, to the residual. Throws `invalid_value`, and changes nothing,
    /// if a sum is not finite.
    void add_to_residual(std::span<const T> more) {
        RILL_EXPECTS(more.size() == dimension(), "add_to_residual: a residual of another dimension");
        if constexpr (std::floating_point<T>)
            if (const auto bad = kernel::find_non_finite_sum<T>(residual(), more, T{1}))
                throw invalid_value(text_of({"the residual is not finite at coordinate ", *bad}));
        most_ = kernel::add_scaled<T>(residual(), more, T{1}, span_of(residual_));
    }

    template <Executor Exec = serial>
    auto encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        require_finite_sums(input, executor);
        most_ = kernel::add_scaled<T>(residual(), input, scale_, span_of(residual_), executor);
        sent_.is_pending = false;  // where the inner codec throws, nothing is on its way
        received_.clear();
        sent_.view = encode_with(inner_, residual(), executor);
        sent_.is_pending = true;
        return sent_.view;
    }

    /// See `LearnsReceived`.
    bool learns_received() const {
        return possible_codings.rounds && (unbiased_rounding_ || !codings().contribution.is_unbiased());
    }
    void take_received(const stream_view<T, index_type>& piece) {
        RILL_EXPECTS(possible_codings.rounds,
                     "error_feedback: codings() rounds values, which possible_codings excludes");
        if (!learns_received()) return;
        received_.append(piece.values().data(), piece.values().size());
    }

    void decode(std::span<const T> folded, std::span<T> output)
        requires(!is_coordinatewise)
    {
        inner_.decode(folded, output);
    }

    /// The contribution is in the result: the residual is what was to be sent less what the receivers have decoded, or,
    /// of an unbiased rounding that is not fed back, less what was sent.
    void commit() {
        if (sent_.is_pending) take_out();
        sent_.is_pending = false;
        inner_.commit();
    }

    /// The contribution is not in the result: all of it stays in the residual.
    void rollback() {
        sent_.is_pending = false;
        inner_.rollback();
    }

    /// Stores `residual()` as a section of `to`, a `train::checkpoint_writer` or a type like it.
    template <class Writer>
    void save(Writer& to, const std::string& name) const {
        to.add(name + ".residual", residual());
    }
    template <class Reader>
    void restore(const Reader& from, const std::string& name) {
        from.read(name + ".residual", span_of(residual_));
        most_ = kernel::largest<T>(residual());
        sent_.is_pending = false;
    }

  private:
    void take_out() {
        const auto& sent = sent_.view;
        const bool is_rounded = possible_codings.rounds && !received_.empty();
        const std::span<const T> received = is_rounded ? std::span<const T>(span_of(received_)) : sent.values();
        if constexpr (!is_coordinatewise)
            inner_.erase_sent(received, span_of(residual_));
        else if (!is_rounded && sent.is_dense())
            rill::detail::fill_elements(residual_.data(), residual_.size(), T{});
        else if (!is_rounded)
            for (std::size_t j = 0; j < sent.count(); ++j) residual_[sent.indices()[j]] = T{};
        else if (sent.is_dense())
            most_ = kernel::add_scaled<T>(residual(), received, T{-1}, span_of(residual_));
        else
            for (std::size_t j = 0; j < received.size(); ++j) residual_[sent.indices()[j]] -= received[j];
    }

    static bool is_finite(T value) {
        return !std::floating_point<T> || kernel::magnitude(value) < kernel::largest_magnitude<T>;
    }

    /// Throws before the residual changes. No sum is larger than the sum of the largest magnitudes, so the coordinates
    /// are only searched if that is not finite.
    template <Executor Exec>
    void require_finite_sums([[maybe_unused]] std::span<const T> input, [[maybe_unused]] const Exec& executor) const {
        if constexpr (std::floating_point<T>) {
            const T most_of_input = std::bit_cast<T>(kernel::largest(input, executor));
            const T product = scale_ * most_of_input;
            if (is_finite(std::bit_cast<T>(kernel::magnitude(product)) + std::bit_cast<T>(most_))) return;
            if (const auto bad = kernel::find_non_finite_sum<T>(residual(), input, scale_))
                throw invalid_value(text_of({"the gradient is not finite at coordinate ", *bad}));
        }
    }

    Codec inner_;
    aligned_vector<T> residual_;
    sent_view<T, index_type> sent_;
    aligned_vector<T> received_;  ///< what the receivers decode of it, where that is fed back
    bool unbiased_rounding_;
    kernel::magnitude_key<T> most_ = 0;  ///< an upper bound of the magnitudes in the residual
    T scale_{1};
};

/// Error feedback (SparCML, Algorithm 1): each worker adds to its next contribution what the compressor left out and
/// what the coding of values rounded off, so that no gradient mass is lost. Transactional: what is sent leaves the
/// residual only when the contribution is in the result; a failed, late or skipped contribution stays in it, and must
/// not be given again. What the receivers decode plus residual is input plus residual before: bit for bit where values
/// are sent as they are, else but for the rounding of one subtraction.
///
/// A biased rounding (`bf16`) is always fed back. An unbiased one (`qsgd`) averages out by itself; it is fed back by
/// choice (`unbiased_rounding`), which is sound only where a value's error is smaller than the values of its bucket:
/// with few bits and large buckets the residual would grow without bound.
/// `bind` gives a model of `Compressor`. The compressor must not be an `error_feedback`. Memory: N elements, and one
/// for each entry sent whose rounding is fed back.
template <class Policy>
struct error_feedback {
    Policy compressor{};
    bool unbiased_rounding = false;  ///< feeds back, besides, what an unbiased value coding at the source rounds off

    static constexpr const char* name = "error_feedback";

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        using inner = decltype(compressor.template bind<T, Index>(dimension));
        static_assert(Compressor<inner, T>,
                      "rill::compress::error_feedback: what the compressor binds to does not model Compressor; give it "
                      "the members that rill/concept/compressor.hpp names");
        if constexpr (Compressor<inner, T>) {
            static_assert(!ResidualCompressor<inner>,
                          "rill::compress::error_feedback: the compressor already feeds back what it leaves out, which "
                          "would be sent twice; remove one error_feedback");
            static_assert(inner::is_contractive || ResidualCompressor<inner>,
                          "rill::compress::error_feedback: the compressor is not contractive, so the residual would "
                          "grow without bound; use top_k, bucket_top_k, threshold or random_mask");
            static_assert(!inner::is_contractive || FeedbackCompressor<inner, T>,
                          "rill::compress::error_feedback: the compressor does not send coordinates of its input and "
                          "has no erase_sent(received, values); add it, so that what was sent leaves the residual");
            if constexpr (FeedbackCompressor<inner, T>)
                return error_feedback_codec<inner, T>(compressor, dimension, unbiased_rounding);
        }
    }
    friend constexpr bool operator==(const error_feedback&, const error_feedback&) = default;
};

template <class Policy>
error_feedback(Policy) -> error_feedback<Policy>;
template <class Policy>
error_feedback(Policy, bool) -> error_feedback<Policy>;

}}}  // namespace rill::RILL_ABI::compress
