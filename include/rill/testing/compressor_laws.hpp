#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Small whole numbers, none of them zero: sums and differences are exact.
template <Element T>
std::vector<T> law_input(std::size_t dimension, std::uint64_t seed) {
    std::vector<T> input(dimension);
    random_sequence random(random_key{seed});
    for (T& x : input) x = static_cast<T>(1 + random.below(1000)) * (random.below(2) == 0 ? T{1} : T{-1});
    return input;
}

/// Encodes `input` and returns the contribution as a dense vector over the coded dimension; checks the view's range and
/// indices.
template <Element T, Compressor<T> Codec>
std::vector<T> law_sent(Codec& codec, std::span<const T> input) {
    const auto view = codec.encode(input);
    expect_equal(view.range().begin, std::size_t{0}, "begin of what is encoded");
    expect_equal(view.range().end, codec.coded_dimension(), "end of what is encoded");
    for (std::size_t i = 0; i < view.indices().size(); ++i) {
        expect(view.range().contains(std::size_t{view.indices()[i]}), "an index lies outside the coded dimension");
        expect(i == 0 || view.indices()[i - 1] < view.indices()[i], "indices are not strictly ascending");
    }
    std::vector<T> sent(codec.coded_dimension());
    copy_dense(view, std::span<T>(sent), T{});
    return sent;
}

/// Returns the result of an operation to which only `sent` is contributed.
template <Element T, Compressor<T> Codec>
std::vector<T> law_result(Codec& codec, const std::vector<T>& sent) {
    if constexpr (Codec::is_coordinatewise) {
        return sent;
    } else {
        std::vector<T> result(codec.dimension());
        codec.decode(std::span<const T>(sent), std::span<T>(result));
        return result;
    }
}

/// Runs one operation with its commit, and returns the result.
template <Element T, Compressor<T> Codec>
std::vector<T> law_operation(Codec& codec, std::uint64_t number, const std::vector<T>& input) {
    codec.begin(number);
    const std::vector<T> result = law_result<T>(codec, law_sent<T>(codec, std::span<const T>(input)));
    codec.commit();
    return result;
}

template <Element T>
double law_norm(const std::vector<T>& a, const std::vector<T>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        sum += d * d;
    }
    return std::sqrt(sum);
}

/// Runs one operation without its commit, and returns the result that other ranks compute from the frame, which has the
/// codec's `contribution` coding.
template <Element T, Compressor<T> Codec>
std::vector<T> law_received(Codec& codec, std::uint64_t number, const std::vector<T>& input) {
    using Index = typename Codec::index_type;
    codec.begin(number);
    const stream_view<T, Index> sent = codec.encode(std::span<const T>(input));
    const wire::header head{
        .kind = operation::all_reduce, .dimension = codec.coded_dimension(), .weight = 1, .contributors = 1};
    arena memory;
    frame_scratch<T, Index> room;
    const byte_view bytes = coded_frame(head, sent, codec.codings().contribution, random_key{}.derive(number), memory);
    const frame received = frame_reader(byte_pieces{bytes}).template next<T, Index>();
    std::vector<T> dense(codec.coded_dimension());
    const stream_view<T, Index> content = content_of(received.with(codec.codings().contribution.own), room);
    if constexpr (LearnsReceived<Codec, stream_view<T, Index>>)
        if (!codec.codings().contribution.is_lossless()) codec.take_received(content);
    copy_dense(content, std::span<T>(dense), T{});
    return law_result<T>(codec, dense);
}

/// Runs tasks from the last to the first, as if by four threads. Models `Executor`.
struct backwards {
    static constexpr const char* name = "backwards";

    static constexpr int concurrency() { return 4; }
    template <class Body>
    void run(std::size_t tasks, const Body& body) const {
        while (tasks > 0) body(--tasks);
    }
    friend constexpr bool operator==(backwards, backwards) = default;
};

/// The laws. Each function throws if its law does not hold.
template <Element T, class Bind>
class compressor_laws {
  public:
    using codec_type = std::invoke_result_t<Bind&>;
    static constexpr bool keeps_residual = ResidualCompressor<codec_type>;

    explicit compressor_laws(Bind& bind) : bind_(bind), dimension_(bind().dimension()) {}

    void is_determined_by_its_binding() const {
        auto a = bind_(), b = bind_();
        expect_equal(fingerprint_of(a), fingerprint_of(b), "the fingerprint of a codec that was bound alike");
        for (std::uint64_t number = 1; number <= 4; ++number)
            expect(law_operation<T>(a, number, input(number)) == law_operation<T>(b, number, input(number)),
                   "two codecs that were bound alike give other results");
    }

    void rounds_only_where_its_type_says_so() const {
        expect(codings_of<codec_type>.rounds || bind_().codings().contribution.is_lossless(),
               "codings() rounds contributions, which possible_codings excludes");
    }

    /// Two codecs swap what they choose of two inputs: each entry is swapped in both or in none.
    void chooses_alike_and_leaves_the_rest() const
        requires AlikeCompressor<codec_type, T>
    {
        auto a = bind_(), b = bind_();
        for (std::uint64_t number = 1; number <= 4; ++number) {
            const std::vector<T> own = input(number), other = input(number + 10);
            a.begin(number);
            b.begin(number);
            expect(a.encode(std::span<const T>(own)).is_dense(), "what is chosen alike is not a dense view");
            const std::vector<T> of_own = law_sent<T>(a, std::span<const T>(own));
            const std::vector<T> of_other = law_sent<T>(b, std::span<const T>(other));
            expect_equal(of_own.size(), of_other.size(), "how many entries another rank chooses");
            std::vector<T> into_own = own, into_other = other;
            a.write_back(std::span<const T>(of_other), std::span<T>(into_own));
            b.write_back(std::span<const T>(of_own), std::span<T>(into_other));
            std::size_t swapped = 0;
            for (std::size_t i = 0; i < own.size(); ++i) {
                const bool stays = into_own[i] == own[i] && into_other[i] == other[i];
                expect(stays || (into_own[i] == other[i] && into_other[i] == own[i]),
                       "an entry that is written back is at another place, or not chosen by another rank");
                swapped += stays && own[i] != other[i] ? 0U : 1U;
            }
            expect(swapped >= of_own.size(), "not all chosen entries are written back");
            a.commit();
            b.commit();
        }
    }

    /// Runs an operation without a contribution, and one that is rolled back.
    void bears_that_nothing_is_contributed() const {
        auto codec = bind_();
        codec.begin(1);
        law_result<T>(codec, std::vector<T>(codec.coded_dimension()));
        codec.commit();
        codec.begin(2);
        codec.rollback();
        law_operation<T>(codec, 3, input(1));
    }

    void loses_nothing_if_lossless() const {
        auto codec = bind_();
        if (codec_type::is_lossless)
            expect(law_operation<T>(codec, 1, input(1)) == input(1), "the result is not the input");
    }

    /// Compares the distance between the input and the mean over `draws` operations with the distance that the scatter
    /// of single operations predicts. More than four times that distance is not chance. The outcome is reproducible,
    /// because all draws are fixed.
    void hits_the_input_on_average_if_unbiased() const {
        if (!codec_type::is_unbiased) return;
        constexpr int draws = 256;
        const std::vector<T> own = input(1);
        std::vector<double> sum(dimension_), squares(dimension_);
        for (std::uint64_t number = 1; number <= draws; ++number) {
            auto codec = bind_();
            const std::vector<T> received = law_received<T>(codec, number, own);
            for (std::size_t i = 0; i < dimension_; ++i) {
                const double error = static_cast<double>(received[i]) - static_cast<double>(own[i]);
                sum[i] += error;
                squares[i] += error * error;
            }
        }
        double bias = 0, scatter = 0, size = 0;  // squared norms; scatter: of the mean of all draws
        for (std::size_t i = 0; i < dimension_; ++i) {
            const double mean = sum[i] / draws;
            bias += mean * mean;
            scatter += (squares[i] / draws - mean * mean) / (draws - 1);
            size += static_cast<double>(own[i]) * static_cast<double>(own[i]);
        }
        expect(bias <= 16 * std::max(scatter, 0.0) + 1e-12 * size, "the mean of many results is not the input");
    }

    void divides_its_work_without_a_trace() const
        requires ParallelCompressor<codec_type, T, backwards>
    {
        auto alone = bind_(), divided = bind_();
        for (std::uint64_t number = 1; number <= 4; ++number) {
            const std::vector<T> own = input(number), due = law_operation<T>(alone, number, own);
            divided.begin(number);
            const auto view = divided.encode(std::span<const T>(own), backwards{});
            std::vector<T> sent(divided.coded_dimension());
            copy_dense(view, std::span<T>(sent), T{});
            expect(law_result<T>(divided, sent) == due, "with an executor, something else is encoded");
            divided.commit();
        }
    }

    void scales_its_inputs() const
        requires ScalingCompressor<codec_type, T>
    {
        auto scaled = bind_(), plain = bind_();
        scaled.scale_inputs(T{2});
        for (std::uint64_t number = 1; number <= 4; ++number) {
            std::vector<T> own = input(number);
            const std::vector<T> result = law_operation<T>(scaled, number, own);
            for (T& each : own) each *= 2;
            expect(result == law_operation<T>(plain, number, own), "the inputs are not multiplied by the factor");
        }
    }

    void leaves_out_less_than_all_if_contractive() const {
        auto codec = bind_();
        const std::vector<T> nothing(dimension_), sent = law_operation<T>(codec, 1, input(1));
        if (codec_type::is_contractive)
            expect(law_norm(input(1), sent) <= law_norm(input(1), nothing) * (1 + 1e-6),
                   "what is left out is larger than the input");
    }

    void keeps_what_it_does_not_send() const
        requires keeps_residual
    {
        adds_up([](codec_type& codec, std::uint64_t number, const std::vector<T>& own) {
            return law_operation<T>(codec, number, own);
        });
    }

    /// Checks biased roundings only: an unbiased one may be left to average out.
    void keeps_what_is_rounded_off() const
        requires keeps_residual
    {
        if (bind_().codings().contribution.is_unbiased()) return;
        adds_up([](codec_type& codec, std::uint64_t number, const std::vector<T>& own) {
            auto received = law_received<T>(codec, number, own);
            codec.commit();
            return received;
        });
    }

    /// Checks that results and residual add up to the inputs. `operation(codec, number, input)` returns its result.
    template <class Operation>
    void adds_up(Operation operation) const
        requires keeps_residual
    {
        auto codec = bind_();
        std::vector<T> given(dimension_), sent(dimension_);
        for (std::uint64_t number = 1; number <= 3; ++number) {
            const std::vector<T> own = input(number), result = operation(codec, number, own);
            for (std::size_t i = 0; i < dimension_; ++i) given[i] += own[i], sent[i] += result[i];
        }
        for (std::size_t i = 0; i < dimension_; ++i) sent[i] += codec.residual()[i];
        expect(law_norm(sent, given) <= 1e-4 * law_norm(given, std::vector<T>(dimension_)),
               "sent and residual do not add up to the inputs");
    }

    void takes_back_what_is_in_no_result() const
        requires keeps_residual
    {
        auto codec = bind_();
        const std::vector<T> own = input(1);
        codec.begin(1);
        codec.encode(std::span<const T>(own));
        codec.rollback();
        expect(std::equal(own.begin(), own.end(), codec.residual().begin()), "the residual is not the input");
    }

  private:
    std::vector<T> input(std::uint64_t seed) const { return law_input<T>(dimension_, seed); }

    Bind& bind_;
    std::size_t dimension_;
};

/// Runs `check` and reports the outcome to `visit`.
template <class Check, class Visit>
void visit_law(const char* name, Check&& check, Visit& visit) {
    law_outcome outcome;
    try {
        check();
    } catch (const std::exception& failed) {
        outcome = {.held = false, .what = failed.what()};
    }
    visit(name, std::as_const(outcome));
}

}  // namespace detail

/// Checks a compressor against the laws of the concept. `bind()` returns a fresh codec, bound with the same arguments
/// each time.
///
/// Checks `encode`, `decode`, `commit` and `rollback`. If the codec says that it is unbiased, the values that arrive in
/// frames (`stream_codings`) must be unbiased too. The laws of the refinements are checked where a codec models them:
/// `FingerprintedCompressor`, `AlikeCompressor`, `ParallelCompressor`, `ScalingCompressor`, `ResidualCompressor`.
/// `visit(const char* name, const law_outcome&)` is called once per law.
template <Element T, class Bind, class Visit>
    requires Compressor<std::invoke_result_t<Bind&>, T>
void for_each_compressor_law(Bind&& bind, Visit&& visit) {
    using laws = detail::compressor_laws<T, std::remove_reference_t<Bind>>;
    const laws all(bind);
    const auto law = [&](const char* name, void (laws::*check)() const) {
        detail::visit_law(
            name, [&] { (all.*check)(); }, visit);
    };
    law("codecs bound alike do the same", &laws::is_determined_by_its_binding);
    law("values are rounded only where the type says so", &laws::rounds_only_where_its_type_says_so);
    if constexpr (AlikeCompressor<typename laws::codec_type, T>)
        law("what is chosen alike is written back in its places", &laws::chooses_alike_and_leaves_the_rest);
    law("a codec is not disturbed where nothing is contributed", &laws::bears_that_nothing_is_contributed);
    law("a lossless codec loses nothing", &laws::loses_nothing_if_lossless);
    law("an unbiased codec hits the input on average", &laws::hits_the_input_on_average_if_unbiased);
    if constexpr (ParallelCompressor<typename laws::codec_type, T, detail::backwards>)
        law("an executor changes no bit", &laws::divides_its_work_without_a_trace);
    if constexpr (ScalingCompressor<typename laws::codec_type, T>)
        law("a codec that scales multiplies its inputs", &laws::scales_its_inputs);
    law("a contractive codec leaves out less than all", &laws::leaves_out_less_than_all_if_contractive);
    if constexpr (laws::keeps_residual) {
        law("what is sent and what is kept are what was given", &laws::keeps_what_it_does_not_send);
        law("what is received and what is kept are what was given", &laws::keeps_what_is_rounded_off);
        law("a contribution that is in no result returns", &laws::takes_back_what_is_in_no_result);
    }
}

}}}  // namespace rill::RILL_ABI::testing
