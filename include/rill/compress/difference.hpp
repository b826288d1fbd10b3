#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// A `difference` bound to one rank's model. Models `DifferenceCompressor`.
template <class Codec, std::floating_point T>
class difference_codec {
  public:
    using index_type = typename Codec::index_type;
    using view = stream_view<T, index_type>;

    static constexpr bool keeps_replica = true;
    static constexpr coding_set possible_codings = codings_of<Codec>;

    difference_codec(Codec inner, std::optional<double> step)
        : inner_(std::move(inner)),
          step_(step),
          replica_(inner_.dimension(), T{}),
          sum_(inner_.dimension(), T{}),
          difference_(inner_.dimension(), T{}) {}

    std::size_t dimension() const { return inner_.dimension(); }
    std::size_t coded_dimension() { return inner_.coded_dimension(); }
    decltype(auto) codings() const { return inner_.codings(); }
    /// Of all that ranks must have alike: the codec's own, the step, and where replicas have started.
    std::uint64_t fingerprint() const {
        return mix64(rill::fingerprint("difference"), std::bit_cast<std::uint64_t>(step_.value_or(0)), start_,
                     fingerprint_of(inner_), inner_.codings().fingerprint());
    }

    template <class Visit>
    void visit_options(Visit&& visit) const {
        visit("step", step_.value_or(0));
        visit("start_at", start_);
        if constexpr (HasOptions<Codec>) inner_.visit_options(visit);
    }

    /// All replicas start at these values, which are the same on all ranks (checked); else at zero. Called before the
    /// first round.
    void start_at(std::span<const T> model) {
        RILL_EXPECTS(model.size() == dimension(), "difference: the model has another dimension");
        RILL_EXPECTS(!has_moved_, "difference: start_at comes before the first round");
        RILL_EXPECTS(!kernel::find_non_finite(model), "difference: start_at: a value is not finite");
        std::copy(model.begin(), model.end(), replica_.begin());
        std::copy(model.begin(), model.end(), sum_.begin());
        start_ = 1;
        for (const T value : model) start_ = mix64(start_, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    }

    bool has_started() const { return start_ != 0; }

    /// What all ranks know of this one's model.
    std::span<const T> replica() const { return span_of(replica_); }
    /// The weighed sum of the replicas of all that this rank mixes with, its own too.
    std::span<const T> neighbours() const { return span_of(sum_); }

    void begin(std::uint64_t number) { inner_.begin(number); }
    view encode(std::span<const T> model) {
        RILL_EXPECTS(model.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        count_ = 0;
        for (std::size_t i = 0; i < model.size(); ++i) difference_[i] = target(model, i) - replica_[i];
        return inner_.encode(std::span<const T>(span_of(difference_)));
    }
    frame_scratch<T, index_type>& room() { return room_; }
    void collect(const view& sent, double weight, bool is_own) {
        if (count_ == terms_.size()) terms_.emplace_back();
        term& next = terms_[count_++];
        next.weight = static_cast<T>(weight);
        next.is_own = is_own;
        next.is_dense = sent.is_dense();
        next.values.assign(sent.values().begin(), sent.values().end());
        next.indices.assign(sent.indices().begin(), sent.indices().end());
    }
    void apply(std::span<T> model) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (terms_[i].is_own) add(terms_[i], T{1}, span_of(replica_));
            add(terms_[i], terms_[i].weight, span_of(sum_));
        }
        count_ = 0;
        has_moved_ = true;
        inner_.commit();
        if (step_) {
            const T step = static_cast<T>(*step_);
            for (std::size_t i = 0; i < model.size(); ++i) model[i] += step * (sum_[i] - replica_[i]);
        } else {
            std::copy(replica_.begin(), replica_.end(), model.begin());
        }
    }
    void rollback() {
        count_ = 0;
        inner_.rollback();
    }

    /// Stores replica and sum as sections of `to`, a `train::checkpoint::writer` or a type like it.
    template <class Writer>
    void save(Writer& to, const std::string& name) const {
        to.add(name + ".replica", replica());
        to.add(name + ".neighbours", neighbours());
        to.add(name + ".start", std::span<const std::uint64_t>(&start_, 1));
    }
    template <class Reader>
    void restore(const Reader& from, const std::string& name) {
        auto replica = replica_, sum = sum_;
        std::uint64_t start = 0;
        from.read(name + ".replica", span_of(replica));
        from.read(name + ".neighbours", span_of(sum));
        from.read(name + ".start", std::span<std::uint64_t>(&start, 1));
        replica_.swap(replica);
        sum_.swap(sum);
        start_ = start;
        has_moved_ = false;
    }

  private:
    /// What a rank has sent in this round.
    struct term {
        T weight{};
        bool is_own = false;
        bool is_dense = false;
        aligned_vector<index_type> indices;
        aligned_vector<T> values;
    };

    /// What the replica is led to: the model, or, where the model is the replica, what it moves to when it is mixed.
    T target(std::span<const T> model, std::size_t i) const {
        return step_ ? model[i] : sum_[i] + (model[i] - replica_[i]);
    }
    void add(const term& from, T weight, std::span<T> to) {
        const std::span<const T> values = span_of(from.values);
        if constexpr (!Codec::is_coordinatewise) {
            inner_.decode(values, span_of(difference_));
            kernel::add_scaled<T>(to, span_of(std::as_const(difference_)), weight, to);
        } else if (from.is_dense) {
            kernel::add_scaled<T>(to, values, weight, to);
        } else {
            for (std::size_t j = 0; j < values.size(); ++j) {
                const T product = weight * values[j];
                to[from.indices[j]] += product;
            }
        }
    }

    Codec inner_;
    std::optional<double> step_;
    aligned_vector<T> replica_;
    aligned_vector<T> sum_;
    aligned_vector<T> difference_;
    std::vector<term> terms_;
    std::size_t count_ = 0;
    frame_scratch<T, index_type> room_;
    std::uint64_t start_ = 0;
    bool has_moved_ = false;
};

/// Mixes models by their differences, so that a codec whose choices differ from rank to rank (`top_k`) can be used:
/// each rank keeps a replica of its model as its neighbours know it, sends what the codec makes of the difference, and
/// all apply the same values. For `gossip::mix` over a mixing that keeps its neighbours.
///
///     auto codec = rill::compress::difference{rill::compress::top_k{.density = 0.01}, 0.05}.bind(model.size());
///     codec.start_at(model);  // if all ranks start from the same
///
/// With a `step` γ a model moves by γ times the difference between its neighbours' mean and itself: CHOCO-SGD, which
/// converges with any codec that `is_contractive`, if γ is small enough. Without one the model is its replica:
/// DCD-PSGD, which needs a codec whose error is small against the difference, and diverges else.
///
/// Cost: what the codec sends, to each neighbour. Memory: three vectors besides the model (replica, neighbours' sum,
/// difference), however many neighbours there are, and what has come in a round. Source: Tang et al. 2018 (DCD-PSGD);
/// Koloskova et al. 2019 (CHOCO-SGD, the memory-efficient version), there with replicas that start at zero.
template <class Policy>
struct difference {
    Policy compressor{};
    std::optional<double> step{};  ///< above 0 and at most 1

    static constexpr const char* name = "difference";

    template <std::floating_point T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        using inner = decltype(compressor.template bind<T, Index>(dimension));
        static_assert(Compressor<inner, T>,
                      "rill::compress::difference: what the compressor binds to does not model Compressor; give it the "
                      "members that rill/concept/compressor.hpp names");
        if constexpr (Compressor<inner, T>) {
            static_assert(inner::is_coordinatewise || AlikeCompressor<inner, T>,
                          "rill::compress::difference: the compressor makes its output from the fold of all ranks "
                          "(PowerSGD), and differences are decoded one by one; use top_k, bucket_top_k, threshold, "
                          "random_mask or keep_all");
            static_assert(
                !ResidualCompressor<inner>,
                "rill::compress::difference: the compressor keeps what it has not sent, and a difference keeps "
                "that too; leave error_feedback away");
            if (step)
                detail::require_option(*step > 0 && *step <= 1, "compress::difference: step", *step,
                                       "above 0 and at most 1");
            return difference_codec<inner, T>(compressor.template bind<T, Index>(dimension), step);
        }
    }
    friend constexpr bool operator==(const difference&, const difference&) = default;
};

template <class P>
difference(P) -> difference<P>;
template <class P>
difference(P, double) -> difference<P>;
template <class P>
difference(P, std::optional<double>) -> difference<P>;

}}}  // namespace rill::RILL_ABI::compress
