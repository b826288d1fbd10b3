// rill 0.1.0: <rill/testing.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TESTING_HPP
#define RILL_SINGLE_TESTING_HPP

#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/testing.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/testing.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

// ===== rill/testing/law.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Thrown where a law does not hold; the message says what was seen.
class law_failure : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// The outcome of checking one law.
struct law_outcome {
    bool held = true;
    std::string what;  ///< what was seen instead, if it does not hold
};

/// Properties of the groups that a runner makes, and limits on what the laws try.
struct transport_limits {
    /// The bound on handed-over bytes of the runner's mailboxes, at least 4096, because ranks post that much before
    /// they receive. 0: unknown; the laws about it are left out.
    std::size_t mailbox_bytes = 0;
    /// Whether the receiver reads a borrowed message in the sender's memory. If so, the send is done only after the
    /// receiver has released the message.
    bool lends = true;
    /// Borrowed messages up to this size are copied when they are posted, and their sends are done then. Laws about
    /// sends under way use larger messages.
    std::size_t copied_bytes = 0;
    /// Whether all ranks run in the checking process, not each in a process of its own.
    bool one_process = true;
    /// Whether the first notice of a context is the same on all ranks, also where notices race.
    bool same_first_notice = true;
    /// Size of a message in the exchange of all with all. It should be well above every size limit of the transport.
    std::size_t large_bytes = std::size_t{8} << 20;
    /// Size of the largest message of all laws.
    std::size_t largest_bytes = 100'000'000;
    /// Size of the largest group; laws that need more ranks are left out.
    int most_ranks = 64;
    /// If not empty, only the law of this name is checked.
    std::string_view only{};
};

/// Throws `law_failure` when `seen` is false.
inline void expect(bool seen, const char* what) {
    if (!seen) throw law_failure(what);
}
/// Throws `law_failure`, with both numbers, when they differ.
template <class Number>
void expect_equal(const Number& seen, const Number& wanted, const char* what) {
    if (seen == wanted) return;
    throw law_failure(std::string(what) + ": " + std::to_string(seen) + " instead of " + std::to_string(wanted));
}

/// Runs laws one by one and reports each outcome to a visitor.
template <class Runner, class Visit>
class law_list {
  public:
    law_list(Runner& runner, const transport_limits& limits, Visit& visit)
        : runner_(runner), limits_(limits), visit_(visit) {}

    const transport_limits& limits() const { return limits_; }

    /// Checks one law: runs `body(net)` on each of `ranks` ranks.
    template <class Body>
    void law(const char* name, int ranks, Body body) const {
        law_of_run(name, ranks, [&](auto& runner) { runner(ranks, body); });
    }

    /// Checks one law about whole runs of up to `ranks` ranks: calls `check(runner)`.
    template <class Check>
    void law_of_run(const char* name, int ranks, Check check) const {
        if (ranks > limits_.most_ranks || (!limits_.only.empty() && limits_.only != name)) return;
        law_outcome outcome;
        try {
            check(runner_);
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit_(name, std::as_const(outcome));
    }

  private:
    Runner& runner_;
    const transport_limits& limits_;
    Visit& visit_;
};

namespace detail {

inline constexpr std::uint64_t law_context = 11;

/// The size of a borrowed message whose send is under way until it is received.
inline std::size_t lent_size(const transport_limits& limits) { return limits.copied_bytes + 1000; }

inline constexpr std::size_t pattern_period = 4093;

/// Returns `size` bytes that depend on `seed`: random bytes, repeated with a prime period, so that misplaced blocks are
/// detected. Repetitions are copied, so that 100 MB are cheap without optimisation too.
inline buffer pattern(std::size_t size, std::uint64_t seed) {
    buffer bytes(size);
    for (std::size_t i = 0; i < size && i < pattern_period; ++i)
        bytes[i] = static_cast<std::byte>(mix64(seed, i) & 0xFFU);
    for (std::size_t done = pattern_period; done < size; done *= 2)
        std::memcpy(bytes.data() + done, bytes.data(), std::min(done, size - done));
    return bytes;
}

/// Whether the pieces, joined, equal `wanted`.
inline bool same_bytes(const byte_pieces& pieces, byte_view wanted) {
    for (const byte_view piece : pieces) {
        if (piece.size() > wanted.size()) return false;
        if (!piece.empty() && std::memcmp(piece.data(), wanted.data(), piece.size()) != 0) return false;
        wanted = wanted.subspan(piece.size());
    }
    return wanted.empty();
}

/// Whether the pieces, joined, equal `pattern(size, seed)`, without making all of it.
inline bool is_pattern(const byte_pieces& pieces, std::size_t size, std::uint64_t seed) {
    const buffer block = pattern(std::min(size, pattern_period), seed);
    std::size_t seen = 0;
    for (byte_view piece : pieces)
        while (!piece.empty()) {
            const byte_view wanted = byte_view(block).subspan(seen % pattern_period);
            const std::size_t count = std::min(piece.size(), wanted.size());
            if (count == 0 || std::memcmp(piece.data(), wanted.data(), count) != 0) return false;
            piece = piece.subspan(count);
            seen += count;
        }
    return seen == size;
}

/// Returns a message that holds one number.
inline buffer number_message(std::uint32_t value) {
    buffer bytes(4);
    for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFFU);
    return bytes;
}
template <class Message>
std::uint32_t number_in(const Message& message) {
    std::uint32_t value = 0;
    unsigned shift = 0;
    for (const byte_view piece : message.pieces())
        for (const std::byte b : piece) {
            value |= std::to_integer<std::uint32_t>(b) << shift;
            shift += 8;
        }
    expect(shift == 32, "a message of 4 bytes arrives with another size");
    return value;
}

template <class Net>
void post_number(Net& net, rank_t peer, channel on, std::uint32_t value) {
    expect(net.post(peer, on, number_message(value), deadline::never), "a handed-over message is refused");
}
template <class Net>
std::uint32_t receive_number(Net& net, rank_t peer, channel on) {
    const auto message = net.receive(peer, on, deadline::never);
    expect(message.has_value(), "a receive without deadline comes back empty");
    expect_equal(message->source(), peer, "source of a message");
    return number_in(*message);
}

/// Returns on any rank when all ranks have called it; uses its own context.
template <class Net>
void meet(Net& net, std::uint32_t round) {
    const channel on{.context = law_context + 1, .tag = round};
    if (net.rank() == 0) {
        for (rank_t peer = 1; peer < net.size(); ++peer) receive_number(net, peer, on);
        for (rank_t peer = 1; peer < net.size(); ++peer) post_number(net, peer, on, round);
    } else {
        post_number(net, 0, on, round);
        receive_number(net, 0, on);
    }
}

}  // namespace detail
}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/aggregator_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Small whole numbers, whose sums are exact in every type.
template <Element T>
std::vector<T> law_samples() {
    std::vector<T> all{T{0}, T{1}, T{-1}};
    random_sequence random(random_key{3});
    for (int i = 0; i < 9; ++i) all.push_back(static_cast<T>(random.below(2001)) - T{1000});
    return all;
}

/// Special values of floating-point types: NaN, infinities, zeros of both signs; and some ordinary values.
template <Element T>
std::vector<T> law_special_samples() {
    using limits = std::numeric_limits<T>;
    if constexpr (std::floating_point<T>)
        return {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T{0}, -T{0}, T{1}, T{-4}, T{5}};
    else
        return {};
}

/// Whether two values are equal bit for bit; all NaNs count as equal.
template <Element T>
bool is_same_value(T x, T y) {
    if constexpr (std::floating_point<T>)
        return (x != x && y != y) || (x == y && std::signbit(x) == std::signbit(y));
    else
        return x == y;
}

template <Element T, class Fold>
bool identity_is_neutral(const Fold& fold) {
    const T neutral = fold.template identity<T>();
    for (T a : law_samples<T>())
        if (fold.fold(neutral, a) != a || fold.fold(a, neutral) != a) return false;
    // Zeros of both signs count as equal here: 0 + -0 is +0.
    const auto stays = [](T a, T folded) { return a == a ? folded == a : folded != folded; };
    for (T a : law_special_samples<T>())
        if (!stays(a, fold.fold(neutral, a)) || !stays(a, fold.fold(a, neutral))) return false;
    return true;
}

template <Element T, class Fold>
bool is_associative(const Fold& fold, const std::vector<T>& samples) {
    for (T a : samples)
        for (T b : samples)
            for (T c : samples)
                if (!is_same_value(fold.fold(fold.fold(a, b), c), fold.fold(a, fold.fold(b, c)))) return false;
    return true;
}

template <Element T, class Fold>
bool commutes(const Fold& fold, const std::vector<T>& samples) {
    for (T a : samples)
        for (T b : samples)
            if (!is_same_value(fold.fold(a, b), fold.fold(b, a))) return false;
    return true;
}

template <Element T, class Fold>
bool adds(const Fold& fold) {
    if constexpr (AddingAggregator<Fold>)
        for (T a : law_samples<T>())
            for (T b : law_samples<T>())
                if (fold.fold(a, b) != a + b) return false;
    return true;
}

template <Element T, class Fold>
bool finish_changes_nothing(const Fold& fold) {
    std::vector<T> values = law_samples<T>();
    fold.finish(std::span<T>(values), 3.0);
    return values == law_samples<T>();
}

}  // namespace detail

/// Checks an aggregator against the laws of the concept, on elements of type T.
///
/// `visit(const char* name, const law_outcome&)` is called once per law. A flag may promise less than what holds.
template <Element T, Aggregator<T> Fold, class Visit>
void for_each_aggregator_law(const Fold& fold, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(Fold::name) + ": " + otherwise});
    };
    law("the identity is neutral", detail::identity_is_neutral<T>(fold), "fold(identity, x) is not always x");
    const std::vector<T> usual = detail::law_samples<T>(), special = detail::law_special_samples<T>();
    law("a fold is associative", detail::is_associative<T>(fold, usual),
        "fold(fold(a, b), c) is not fold(a, fold(b, c))");
    law("a fold commutes where it says so", !Fold::is_commutative || detail::commutes<T>(fold, usual),
        "is_commutative is true, but fold(a, b) is not always fold(b, a)");
    law("a fold is associative with NaN, infinities and zeros of both signs", detail::is_associative<T>(fold, special),
        "fold(fold(a, b), c) is not fold(a, fold(b, c)) where one is a NaN, an infinity or a zero: the result of a "
        "collective would depend on the topology");
    law("a fold commutes with NaN, infinities and zeros of both signs",
        !Fold::is_commutative || detail::commutes<T>(fold, special),
        "is_commutative is true, but fold(a, b) is not fold(b, a) where one is a NaN, an infinity or a zero");
    law("a fold adds where it says so", detail::adds<T>(fold),
        "is_addition is true, but fold(a, b) is not always a + b");
    law("a trivial finish changes nothing", !Fold::finish_is_trivial || detail::finish_changes_nothing<T>(fold),
        "finish_is_trivial is true, but finish changes values");
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/compressor_laws.hpp

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

// ===== rill/testing/coverage.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Counts runs in a grid that has an axis for each property of a run. Memory: two numbers for each cell.
class coverage {
  public:
    struct axis {
        std::string name;
        std::vector<std::string> values;
    };

    explicit coverage(std::vector<axis> axes) : axes_(std::move(axes)) {
        std::size_t cells = 1;
        for (const axis& each : axes_) cells *= each.values.size();
        cells_.resize(cells);
    }

    /// Counts a run of the cell, which is given by the number of its value on each axis. `failed`: the run showed a
    /// fault.
    void count(std::initializer_list<std::size_t> cell, bool failed) {
        RILL_EXPECTS(cell.size() == axes_.size(), "coverage: a cell has a value on each axis");
        std::size_t at = 0;
        const axis* along = axes_.data();
        for (const std::size_t value : cell) {
            RILL_EXPECTS(value < along->values.size(), "coverage: no such value on an axis");
            at = at * (along++)->values.size() + value;
        }
        ++cells_[at].runs;
        cells_[at].failed += failed ? 1 : 0;
    }

    std::size_t cells() const { return cells_.size(); }
    std::uint64_t runs() const {
        std::uint64_t sum = 0;
        for (const contribution_sum& each : cells_) sum += each.runs;
        return sum;
    }

    /// Names the first few cells without a run, and their number if there are more; empty if every cell has one.
    std::string never_run() const {
        constexpr std::size_t named = 10;
        std::string text;
        std::size_t missing = 0;
        for (std::size_t at = 0; at < cells_.size(); ++at)
            if (cells_[at].runs == 0 && ++missing <= named) text += name_of(at) + "\n";
        return missing > named ? text + "... " + std::to_string(missing) + " cells in all\n" : text;
    }

    /// Returns a table of runs by two axes, summed over the others: `runs/failed`, or `runs` where none failed.
    std::string table(std::size_t rows, std::size_t columns) const {
        RILL_EXPECTS(rows < axes_.size() && columns < axes_.size() && rows != columns, "coverage: no such axes");
        std::vector<std::vector<std::string>> text(1, {axes_[rows].name + " \\ " + axes_[columns].name});
        for (const std::string& value : axes_[columns].values) text[0].push_back(value);
        const auto sums = by(rows, columns);
        for (std::size_t r = 0; r < axes_[rows].values.size(); ++r) {
            text.push_back({axes_[rows].values[r]});
            for (const contribution_sum& sum : sums[r])
                text.back().push_back(std::to_string(sum.runs) +
                                      (sum.failed > 0 ? "/" + std::to_string(sum.failed) : ""));
        }
        return aligned(text);
    }

  private:
    struct contribution_sum {
        std::uint64_t runs = 0;
        std::uint64_t failed = 0;
    };

    std::size_t value_of(std::size_t cell, std::size_t wanted) const {
        for (std::size_t i = axes_.size() - 1; i > wanted; --i) cell /= axes_[i].values.size();
        return cell % axes_[wanted].values.size();
    }
    std::string name_of(std::size_t cell) const {
        std::string text;
        for (std::size_t i = 0; i < axes_.size(); ++i)
            text += (i == 0 ? "" : ", ") + axes_[i].name + " " + axes_[i].values[value_of(cell, i)];
        return text;
    }

    std::vector<std::vector<contribution_sum>> by(std::size_t rows, std::size_t columns) const {
        std::vector<std::vector<contribution_sum>> sums(axes_[rows].values.size(),
                                                        std::vector<contribution_sum>(axes_[columns].values.size()));
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            contribution_sum& sum = sums[value_of(at, rows)][value_of(at, columns)];
            sum.runs += cells_[at].runs;
            sum.failed += cells_[at].failed;
        }
        return sums;
    }

    static std::string aligned(const std::vector<std::vector<std::string>>& text) {
        std::vector<std::size_t> widths(text[0].size());
        for (const auto& row : text)
            for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
        std::string all;
        for (const auto& row : text) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::string gap(widths[i] - row[i].size(), ' ');
                all += i == 0 ? row[i] + gap : "  " + gap + row[i];
            }
            all += "\n";
        }
        return all;
    }

    std::vector<axis> axes_;
    std::vector<contribution_sum> cells_;
};

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/fault_kind.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// The kind of fault in a run; `draw_faults` turns it into a plan.
enum class fault_kind : std::uint8_t {
    none,
    delay,          ///< messages are late
    reorder,        ///< messages of different senders overtake each other
    slow,           ///< a rank computes slowly
    kill,           ///< a rank ends without a word
    restart,        ///< a rank ends without a word and begins anew later
    cut,            ///< a directed link loses everything, from some moment on
    cut_both_ways,  ///< nothing gets through between two ranks, from some moment on
    cut_and_heal,   ///< a link, or both of two ranks, loses everything for some time
    loss,           ///< messages are lost by chance
    duplicate       ///< messages arrive twice by chance
};

/// All kinds, in the order of the enumeration.
inline constexpr fault_kind every_fault_kind[] = {fault_kind::none, fault_kind::delay,         fault_kind::reorder,
                                                  fault_kind::slow, fault_kind::kill,          fault_kind::restart,
                                                  fault_kind::cut,  fault_kind::cut_both_ways, fault_kind::cut_and_heal,
                                                  fault_kind::loss, fault_kind::duplicate};

/// Returns the name for tables, e.g. "cut_both_ways".
constexpr const char* name(fault_kind kind) {
    constexpr const char* names[] = {"none", "delay",         "reorder",      "slow", "kill",     "restart",
                                     "cut",  "cut_both_ways", "cut_and_heal", "loss", "duplicate"};
    return names[static_cast<std::size_t>(kind)];
}

namespace detail {

/// Draws the random parts of a plan.
class fault_dice {
  public:
    fault_dice(int ranks, duration within, random_key key) : ranks_(ranks), within_(within), draw_(key) {}

    std::uint64_t below(std::uint64_t bound) { return draw_.below(bound); }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    duration time(duration most) {
        return duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.ns) + 1)));
    }
    duration moment() { return time(within_); }
    duration within() const { return within_; }

    rank_t rank() { return static_cast<rank_t>(below(static_cast<std::uint64_t>(ranks_))); }
    rank_t other_than(rank_t one) {
        const auto step = static_cast<rank_t>(1 + below(static_cast<std::uint64_t>(ranks_ - 1)));
        return (one + step) % ranks_;
    }

    /// Lets `f` begin at a moment of the run, or after some messages: amid a protocol's rounds, or from the start.
    fault begun(const fault& f) { return one_in(3) ? f.at(moment()) : f.after(below(one_in(2) ? 4 : 40)); }
    /// Puts `f` on one directed link.
    fault link_of(const fault& f) {
        const rank_t from = rank();
        return f.on(from, other_than(from));
    }
    /// Puts `f` on one directed link, or leaves it on all.
    fault somewhere(const fault& f) { return one_in(2) ? link_of(f) : f; }
    /// Returns 1, 1/2, 1/4, … or 1/64.
    double probability() {
        const auto halvings = below(7);
        return halvings == 0 ? 1.0 : 1.0 / static_cast<double>(std::uint64_t{1} << halvings);
    }

  private:
    int ranks_;
    duration within_;
    random_sequence draw_;
};

}  // namespace detail

/// Draws a random plan of one kind for a run of `ranks` ranks, at least 2. A fault that begins at a time begins in the
/// first `within` of the run; a link that is cut and healed works again by then. A pure function of its arguments.
inline fault_plan draw_faults(fault_kind kind, int ranks, duration within, random_key key) {
    RILL_EXPECTS(ranks >= 2 && within.ns > 0, "draw_faults: needs two ranks and some time");
    detail::fault_dice dice(ranks, within, key);
    fault_plan plan{.faults = {}, .seed = dice.below(1000)};
    const auto add = [&](const fault& f) { plan.faults.push_back(f); };
    switch (kind) {
        case fault_kind::none: break;
        case fault_kind::delay: add(dice.somewhere(faults::delay_up_to(dice.time(within / 100)))); break;
        case fault_kind::reorder: add(faults::reorder(dice.probability(), dice.time(within / 100))); break;
        case fault_kind::slow: add(faults::slow(dice.rank(), 1 + static_cast<double>(dice.below(50)))); break;
        case fault_kind::kill: add(dice.begun(faults::kill(dice.rank()))); break;
        case fault_kind::restart:
            add(dice.begun(faults::kill(dice.rank())));
            add(faults::restart(plan.faults[0].from).at(dice.moment()));
            break;
        case fault_kind::cut: add(dice.begun(dice.link_of(faults::cut(any_rank, any_rank)))); break;
        case fault_kind::cut_both_ways: {
            const fault one = dice.link_of(faults::cut(any_rank, any_rank));
            add(dice.begun(one.between(one.from, one.to)));
            break;
        }
        case fault_kind::cut_and_heal: {
            fault cut = dice.link_of(faults::cut(any_rank, any_rank));
            cut.both_ways = dice.one_in(2);
            fault heal = cut;
            heal.kind = fault::what::heal;
            add(dice.begun(cut));
            if (plan.faults[0].begins.ns == 0 && dice.one_in(2))  // the link may work again within the same call
                heal = heal.after(plan.faults[0].skipped + 1 + dice.below(3));
            else
                heal = heal.at(plan.faults[0].begins + dice.time(within - plan.faults[0].begins));
            add(heal);
            if (heal.begins.ns == 0) add(heal.after(0).at(within));
            break;
        }
        case fault_kind::loss: add(dice.somewhere(faults::lose(dice.probability()))); break;
        case fault_kind::duplicate: add(dice.somewhere(faults::duplicate(dice.probability()))); break;
    }
    return plan;
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/protocol_case.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// All that a run of a given protocol depends on: equal cases give equal runs.
struct protocol_case {
    std::uint64_t seed = 0;  ///< of the network, of the ranks' delays, and of the protocol's own draws
    int ranks = 2;
    std::size_t size = 0;  ///< of the data; its unit is the protocol's choice
    bool plain = false;    ///< a uniform network without cards, jitter or computing times; no rank enters late
    fault_plan faults{};

    /// The key of the protocol's own random numbers.
    random_key key() const { return random_key{seed}.derive(1); }

    friend bool operator==(const protocol_case&, const protocol_case&) = default;
};

/// Returns the case in one line, which `parse_protocol_case` reads: `run 7 ranks 3 size 65 plain: seed 0; kill rank 2
/// after 3`.
inline std::string to_string(const protocol_case& of) {
    return "run " + std::to_string(of.seed) + " ranks " + std::to_string(of.ranks) + " size " +
           std::to_string(of.size) + (of.plain ? " plain" : "") + ": " + to_string(of.faults);
}

/// Reads a case from the text that `to_string` makes. Throws `std::runtime_error` if the text is no case.
inline protocol_case parse_protocol_case(std::string_view text) {
    const std::string_view all = text;
    const auto refuse = [&] {
        throw std::runtime_error("rill: no case of a protocol ('run 7 ranks 3 size 65: seed 0; ...'): '" +
                                 std::string(all) + "'");
    };
    const auto take = [&](std::string_view word) {
        const bool is_next = text.substr(0, word.size()) == word;
        if (is_next) text.remove_prefix(word.size());
        return is_next;
    };
    const auto number = [&]<class Number>(std::string_view before, Number& value) {
        if (!take(before)) refuse();
        const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (trouble != std::errc{}) refuse();
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    };
    protocol_case of;
    number("run ", of.seed);
    number(" ranks ", of.ranks);
    number(" size ", of.size);
    of.plain = take(" plain");
    if (!take(":") || of.ranks < 1) refuse();
    of.faults = parse_fault_plan(text);
    return of;
}

/// Limits on the cases that `draw_case` draws, and on their runs.
struct protocol_limits {
    int least_ranks = 2;
    int most_ranks = 16;
    std::size_t most_size = 2000;
    /// How long a rank of the protocol waits for others before it gives up. The network is much faster: its latencies
    /// and jitter are at most a thousandth of this time, except by a fault.
    duration timeout = seconds(10);
    /// The longest delay before a rank's call. Below half the timeout, so that it can be told who waits for whom.
    duration latest_entry = seconds(4);
    /// How notices travel. Where control is ideal, all failures of one call must name the same culprit.
    simulated::control_plane control = simulated::control_plane::travelling;
    /// Longest virtual time of a run; one that takes longer counts as hanging.
    duration longest = seconds(10'000);
};

/// Draws a random case: the number of ranks, the size (0, 1, up to the number of ranks, and larger ones), and faults of
/// the kind. A pure function of its arguments.
inline protocol_case draw_case(fault_kind kind, std::uint64_t seed, const protocol_limits& limits = {}) {
    RILL_EXPECTS(2 <= limits.least_ranks && limits.least_ranks <= limits.most_ranks,
                 "draw_case: needs at least two ranks");
    random_sequence draw(random_key{seed}.derive(2));
    protocol_case drawn{.seed = seed, .plain = draw.below(8) == 0};
    drawn.ranks = limits.least_ranks +
                  static_cast<int>(draw.below(static_cast<std::uint64_t>(limits.most_ranks - limits.least_ranks + 1)));
    const std::uint64_t bounds[] = {1, 2, static_cast<std::uint64_t>(drawn.ranks) + 1, 100, limits.most_size + 1};
    drawn.size = static_cast<std::size_t>(draw.below(bounds[draw.below(5)]));
    drawn.faults = draw_faults(kind, drawn.ranks, limits.timeout, random_key{seed}.derive(3));
    return drawn;
}

/// Returns the network of a case, with its faults; its seed draws links, cards, jitter and computing times.
inline simulated::network network_of(const protocol_case& of, const protocol_limits& limits = {}) {
    simulated::network net{.faults = of.faults,
                           .control = limits.control,
                           .poll = microseconds(10),
                           .stack_bytes = std::size_t{256} << 10,
                           .longest = limits.longest};
    if (of.plain) return net;
    random_sequence draw(random_key{of.seed}.derive(4));
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(bound)));
    };
    const auto any_link = [&]() -> network_link {
        return {.latency = nanoseconds(below(limits.timeout.ns / 10'000)),
                .bandwidth = below(2) == 0 ? 0 : static_cast<std::uint64_t>(1'000'000 + below(1'000'000'000))};
    };
    net.seed = of.seed;
    net.jitter = below(2) == 0 ? duration{} : nanoseconds(below(limits.timeout.ns / 1'000));
    net.links = grouped_links{static_cast<int>(1 + below(of.ranks)), any_link(), any_link()};
    if (below(3) == 0) {
        const auto speed = static_cast<std::uint64_t>(10'000'000 + below(1'000'000'000));
        const bool both = below(2) == 0;
        net.cards = [=](rank_t) {
            return both ? network_card::full_duplex(speed) : network_card::single_receive(speed);
        };
    }
    net.computing = uniform_compute{{}, nanoseconds(1 + below(limits.timeout.ns / 1'000)), of.seed};
    return net;
}

/// Returns how long a rank delays its `step`-th call: not at all, a little, or up to `latest_entry`.
inline duration entry_delay(const protocol_case& of, rank_t rank, int step, const protocol_limits& limits = {}) {
    if (of.plain) return {};
    random_sequence of_step(random_key{of.seed}.derive(5, step));
    const std::int64_t bounds[] = {0, limits.timeout.ns / 1'000, limits.latest_entry.ns};
    const std::int64_t bound = bounds[of_step.below(3)];
    random_sequence of_rank(random_key{of.seed}.derive(6, step, rank));
    return nanoseconds(static_cast<std::int64_t>(of_rank.below(static_cast<std::uint64_t>(bound) + 1)));
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/protocol_record.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// The result of a call that returned, on one rank.
struct call_result {
    bool is_exact = false;   ///< whether the result is the expected one
    std::uint64_t bits = 0;  ///< a hash of the result if it must be the same on all ranks, else 0
};

/// The outcome of one call on one rank.
struct call_record {
    enum class end : std::uint8_t { none, exact, wrong, failed };

    const char* name = "";
    int group = 0;           ///< calls of one group fail together: see `exact_or_named_fault`
    int step = 0;            ///< calls of one step are in flight together; the next step begins after they end
    bool is_spared = false;  ///< no fault of the plan can reach it
    end came = end::none;
    std::uint64_t bits = 0;
    rank_t culprit = no_rank;  ///< set if the call failed, as are `other` and `said`
    rank_t other = no_rank;
    std::string said{};
};

/// What happened on one rank. Its protocol fills it in.
struct rank_record {
    std::vector<call_record> calls;
    std::vector<std::string> complaints;  ///< violations that the protocol itself has noticed
    bool has_ended = false;               ///< the body has returned; set by the harness

    /// Runs `call()`, which returns a `call_result` or throws a `rill::error`, and records its outcome.
    template <class Call>
    const call_record& attempt(const call_record& which, Call&& call) {
        const std::size_t at = calls.size();
        calls.push_back(which);
        try {
            const call_result result = call();
            calls[at].came = result.is_exact ? call_record::end::exact : call_record::end::wrong;
            calls[at].bits = result.bits;
        } catch (const error& e) {
            calls[at].came = call_record::end::failed;
            calls[at].culprit = e.culprit();
            calls[at].other = e.notice().other;
            calls[at].said = e.what();
        }
        return calls[at];
    }
    void complain(std::string what) { complaints.push_back(std::move(what)); }
};

/// What happened in a run.
struct run_record {
    std::vector<rank_record> ranks;
    simulated::report report{};      ///< if the run came to its end
    bool same_first_notice = false;  ///< control was ideal, so that of racing notices one won on all ranks
    std::string ended_by{};          ///< what else ended it: an exception of a body, a deadlock, the time limit

    /// Whether the rank was killed: its body has not returned, or the rank has begun anew.
    bool has_died(rank_t rank) const {
        const auto at = static_cast<std::size_t>(rank);
        return rank >= 0 && at < report.ranks.size() && (!ranks[at].has_ended || report.ranks[at].lives > 1);
    }
    /// Whether the link lost or duplicated messages, or lost control; what was sent to a rank that died does not count.
    bool has_failed(const simulated::link_report& link) const {
        return link.lost + link.duplicated + link.control_lost > 0 && !has_died(link.receiver);
    }
    /// Whether messages between two ranks were lost or duplicated, in either direction.
    bool has_failed_between(rank_t a, rank_t b) const {
        for (const simulated::link_report& each : report.links)
            if (has_failed(each) &&
                ((each.source == a && each.receiver == b) || (each.source == b && each.receiver == a)))
                return true;
        return false;
    }
    /// Whether a rank has died or a link has failed.
    bool has_suffered() const {
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (has_died(static_cast<rank_t>(r))) return true;
        for (const simulated::link_report& each : report.links)
            if (has_failed(each)) return true;
        return false;
    }
    bool any_call_failed() const {
        for (const rank_record& each : ranks)
            for (const call_record& call : each.calls)
                if (call.came == call_record::end::failed) return true;
        return false;
    }
};

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/exact_or_named_fault.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Judges the calls and complaints in the record of a run.
class call_judge {
  public:
    explicit call_judge(const run_record& seen) : seen_(&seen) {}

    /// Returns the first violation found, or an empty string.
    std::string verdict() const {
        std::size_t most = 0;
        for (rank_t r = 0; r < size(); ++r) most = std::max(most, at(r).calls.size());
        for (rank_t r = 0; r < size(); ++r) {
            if (!at(r).complaints.empty()) return told(r, at(r).complaints.front());
            for (const call_record& call : at(r).calls)
                if (std::string wrong = wrong_with(r, call); !wrong.empty()) return wrong;
        }
        for (std::size_t i = 0; i < most; ++i)
            if (std::string wrong = disagreement_in(i); !wrong.empty()) return wrong;
        return {};
    }

  private:
    using end = call_record::end;

    rank_t size() const { return static_cast<rank_t>(seen_->ranks.size()); }
    const rank_record& at(rank_t r) const { return seen_->ranks[static_cast<std::size_t>(r)]; }
    static std::string told(rank_t r, const std::string& what) { return "rank " + std::to_string(r) + ": " + what; }
    static std::string told(rank_t r, const call_record& call, const std::string& what) {
        return told(r, std::string(call.name) + " " + what + (call.said.empty() ? "" : ": " + call.said));
    }

    std::string wrong_with(rank_t r, const call_record& call) const {
        if (call.came == end::wrong) return told(r, call, "gave a wrong result");
        if (call.came != end::failed) return {};
        if (call.is_spared) return told(r, call, "failed though no fault can reach it");
        if (!seen_->has_suffered()) return told(r, call, "failed though nothing went wrong");
        const bool names_the_dead = call.culprit >= 0 && seen_->has_died(call.culprit);
        if (!names_the_dead && !seen_->has_failed_between(call.culprit, call.other))
            return told(r, call, "failed and names neither a rank that died nor a link that failed");
        return {};
    }

    /// Returns what is wrong with the `i`-th calls of all survivors: different results, different culprits, or a
    /// success after an earlier failure in the same group.
    std::string disagreement_in(std::size_t i) const {
        const call_record* result = nullptr;
        const call_record* blaming = nullptr;
        for (rank_t r = 0; r < size(); ++r) {
            if (i >= at(r).calls.size() || seen_->has_died(r)) continue;
            const call_record& call = at(r).calls[i];
            const call_record* const failed = first_failure_in(call.group);
            if (call.came == end::exact && failed != nullptr && failed->step < call.step)
                return told(r, call, "came through after an earlier call of the group had failed: " + failed->said);
            if (call.came == end::failed && blaming != nullptr && seen_->same_first_notice &&
                (blaming->culprit != call.culprit || blaming->other != call.other))
                return told(r, call, "blames another than " + blaming->said);
            if (call.came == end::failed) blaming = &call;
            if (call.came == end::exact && result != nullptr && result->bits != call.bits)
                return told(r, call, "gave other bits than elsewhere");
            if (call.came == end::exact) result = &call;
        }
        return {};
    }
    /// The first failed call of `group` on any survivor, or null.
    const call_record* first_failure_in(int group) const {
        const call_record* first = nullptr;
        for (rank_t r = 0; r < size(); ++r)
            for (const call_record& call : at(r).calls)
                if (call.came == end::failed && call.group == group && !seen_->has_died(r) &&
                    (first == nullptr || call.step < first->step))
                    first = &call;
        return first;
    }

    const run_record* seen_;
};

}  // namespace detail

/// Checks what holds for every run of a collective protocol. Returns an empty string if all of it holds, else what was
/// seen instead.
///
/// - The run ends: no deadlock, no rank that runs beyond the time limit, no exception other than `rill::error`.
/// - Each call on each rank is exact, or fails with an error. The error names as culprit a rank that died, or both ends
///   of a link that has lost or duplicated a message. If no rank died and no message was lost or duplicated, no call
///   fails.
/// - Results agree bit for bit. All failures of one call name the same culprit. After a failure on any survivor, no
///   call of a later step in that group succeeds on any survivor. (Two faults may end two calls: a rank that has
///   completed the first call learns of the second fault only.)
/// - A call that is spared succeeds. No rank complains.
///
/// Calls are compared by their position in `rank_record::calls`: all ranks make the same calls in the same order until
/// they end. Results and culprits are compared among survivors only.
inline std::string exact_or_named_fault(const protocol_case&, const run_record& seen) {
    if (!seen.ended_by.empty()) return seen.ended_by;
    return detail::call_judge(seen).verdict();
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/executor_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr std::size_t law_task_counts[] = {0, 1, 2, 3, 64, 1000};

template <Executor Exec>
void law_each_runs_once(const Exec& executor) {
    for (const std::size_t tasks : law_task_counts) {
        std::vector<std::atomic<int>> calls(tasks);
        std::vector<std::size_t> written(tasks);  // not atomic: the return of `run` must make them visible
        executor.run(tasks, [&](std::size_t i) {
            ++calls.at(i);
            written[i] = i + 1;
        });
        for (std::size_t i = 0; i < tasks; ++i) {
            expect_equal(calls[i].load(), 1, "calls of a task");
            expect_equal(written[i], i + 1, "what a task wrote");
        }
    }
}

/// Some tasks throw their own number. All tasks below the lowest of these must have run.
template <Executor Exec>
void law_lowest_failure(const Exec& executor) {
    for (const std::size_t first : {0U, 37U, 998U}) {
        std::vector<std::atomic<int>> calls(1000);
        std::size_t thrown = calls.size();
        try {
            executor.run(calls.size(), [&](std::size_t i) {
                ++calls[i];
                if (i >= first && (i - first) % 7 == 0) throw i;
            });
        } catch (std::size_t task) {
            thrown = task;
        }
        expect_equal(thrown, first, "the task whose exception is thrown");
        for (std::size_t i = 0; i < first; ++i) expect_equal(calls[i].load(), 1, "calls of a task below a failed one");
        for (const auto& each : calls) expect(each <= 1, "a task is called again because another has failed");
    }
    law_each_runs_once(executor);
}

template <Executor Exec>
void law_rounding(const Exec& executor) {
    struct restore {
        int mode = std::fegetround();
        ~restore() { std::fesetround(mode); }
    } const on_return;
    for (const int mode : {FE_UPWARD, FE_TONEAREST}) {
        std::fesetround(mode);
        std::atomic<int> others = 0;
        executor.run(64, [&](std::size_t) { others += std::fegetround() == mode ? 0 : 1; });
        expect_equal(others.load(), 0, "tasks with another rounding mode than the caller's");
    }
}

}  // namespace detail

/// Checks an executor against the laws of the concept; one of them lets four threads share it.
///
/// `visit(const char* name, const law_outcome&)` is called once per law.
template <Executor Exec, class Visit>
void for_each_executor_law(const Exec& executor, Visit&& visit) {
    const auto law = [&](const char* name, auto check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = std::string(Exec::name) + ": " + failed.what()};
        }
        visit(name, std::as_const(outcome));
    };
    law("each task runs once and is over", [&] { detail::law_each_runs_once(executor); });
    law("the lowest failure is thrown", [&] { detail::law_lowest_failure(executor); });
    law("tasks round as their caller does", [&] { detail::law_rounding(executor); });
    law("something may run", [&] { expect(executor.concurrency() >= 1, "concurrency() is below 1"); });
    law("a copy is equal and does the same", [&] {
        const Exec copy = executor;
        expect(copy == executor, "a copy is not equal");
        expect_equal(copy.concurrency(), executor.concurrency(), "concurrency of a copy");
        detail::law_each_runs_once(copy);
    });
    law("threads may share it", [&] {
        in_process::run(4, [&](auto&) {
            for (int turn = 0; turn < 20; ++turn) detail::law_each_runs_once(executor);
        });
    });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/gradient_code_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Calls `visit(survivors)` with all sets that lack `lost` workers if there are at most `most`, else with some of them.
template <class Visit>
void for_survivors(int workers, int lost, int most, Visit&& visit) {
    std::vector<int> left;
    const auto turn = [&](const std::vector<int>& missing) {
        gradient_code::detail::complement(missing, workers, left);
        visit(left);
    };
    if (gradient_code::detail::subsets(workers, lost, most) <= most)
        gradient_code::detail::for_each_subset(workers, lost, turn);
    else
        gradient_code::detail::for_some_subsets(workers, lost, most, 1, turn);
}

/// Returns a·B − 1, where `row` holds the elements of a for the survivors.
template <class Code>
std::vector<double> remainder(const Code& code, const std::vector<int>& survivors, const std::vector<double>& row) {
    std::vector<double> left(static_cast<std::size_t>(code.partitions()), -1.0);
    for (std::size_t i = 0; i < survivors.size(); ++i) {
        const std::span<const int> at = code.partitions_of(survivors[i]);
        const std::span<const double> with = code.coefficients_of(survivors[i]);
        for (std::size_t j = 0; j < at.size(); ++j) left[static_cast<std::size_t>(at[j])] += row[i] * with[j];
    }
    return left;
}

template <class Code>
bool allocates(const Code& code) {
    std::vector<int> held(static_cast<std::size_t>(code.partitions()));
    for (int worker = 0; worker < code.workers(); ++worker) {
        const std::span<const int> at = code.partitions_of(worker);
        if (at.size() != std::span<const double>(code.coefficients_of(worker)).size()) return false;
        for (std::size_t j = 0; j < at.size(); ++j) {
            if (at[j] < 0 || at[j] >= code.partitions() || (j > 0 && at[j - 1] >= at[j])) return false;
            ++held[static_cast<std::size_t>(at[j])];
        }
    }
    return std::ranges::all_of(held, [&](int count) { return count > code.stragglers(); });
}

template <class Code>
bool reaches_one(const Code& code, const std::vector<int>& survivors) {
    if (!code.is_decodable(survivors)) return false;
    std::vector<double> row(survivors.size());
    code.decoding_row(survivors, row);
    return std::ranges::all_of(remainder(code, survivors, row), [](double left) { return std::abs(left) < 1e-6; });
}

template <class Code>
bool order_does_not_matter(const Code& code, const std::vector<int>& given) {
    std::vector<int> survivors = given;
    std::vector<double> row(survivors.size()), turned(survivors.size()), again(survivors.size());
    code.decoding_row(survivors, row);
    code.decoding_row(survivors, again);
    std::ranges::reverse(survivors);
    code.decoding_row(survivors, turned);
    std::ranges::reverse(turned);
    return row == turned && row == again;
}

/// Whether no survivor can make the remainder shorter, and its length is the one that was returned.
template <class Code>
bool is_closest(const Code& code, const std::vector<int>& survivors) {
    std::vector<double> row(survivors.size());
    const double error = code.approximate_row(survivors, row);
    const std::vector<double> left = remainder(code, survivors, row);
    double squares = 0;
    for (const double value : left) squares += value * value;
    if (std::abs(std::sqrt(squares) - error) > 1e-5 || code.is_decodable(survivors) != (error == 0)) return false;
    return std::ranges::all_of(survivors, [&](int worker) {
        const std::span<const int> at = code.partitions_of(worker);
        const std::span<const double> with = code.coefficients_of(worker);
        double along = 0, length = 0;
        for (std::size_t j = 0; j < at.size(); ++j) {
            along += with[j] * left[static_cast<std::size_t>(at[j])];
            length += std::abs(with[j]);
        }
        return std::abs(along) <= 1e-6 * length;
    });
}

/// Whether no set of fewer than `least_survivors()` is decodable, and the number is not above what the code promises.
template <SmallSetCode Code>
bool needs_least_survivors(const Code& code, int most) {
    const int n = code.workers(), least = code.least_survivors();
    bool held = least >= 1 && least <= n - code.stragglers();
    for (int lost = n - std::max(least, 1) + 1; lost < n; ++lost)
        for_survivors(n, lost, most, [&](const std::vector<int>& left) { held = held && !code.is_decodable(left); });
    return held;
}

template <class Code>
bool refuses(const Code& code, const std::vector<int>& survivors) {
    std::vector<double> row(survivors.size());
    try {
        code.decoding_row(survivors, row);
    } catch (const contract_violation&) {
        return true;
    }
    return false;
}

}  // namespace detail

/// Checks a gradient code against the laws of the concept: on all sets of survivors if there are at most `most`, else
/// on `most` random sets and those that lack neighbouring workers.
///
/// `visit(const char* name, const law_outcome&)` is called once per law. Contracts must be checked (level fast). A law
/// whose check throws does not hold.
template <GradientCode Code, class Visit>
void for_each_gradient_code_law(const Code& code, Visit&& visit, int most = 500) {
    const int n = code.workers(), s = code.stragglers();
    const auto law = [&](const char* name, auto&& holds, const char* otherwise) {
        law_outcome outcome;
        try {
            if (!holds()) outcome = {.held = false, .what = otherwise};
        } catch (const std::exception& thrown) {
            outcome = {.held = false, .what = thrown.what()};
        }
        if (!outcome.held) outcome.what = "(" + std::to_string(n) + ", " + std::to_string(s) + "): " + outcome.what;
        visit(name, std::as_const(outcome));
    };
    const auto of_all = [&](int lost, bool (*check)(const Code&, const std::vector<int>&)) {
        bool held = true;
        detail::for_survivors(n, lost, most, [&](const std::vector<int>& left) { held = held && check(code, left); });
        return held;
    };
    std::vector<int> everyone;
    gradient_code::detail::complement({}, n, everyone);

    law(
        "more workers than stragglers hold each partition", [&] { return detail::allocates(code); },
        "partitions_of is not ascending, or some partition is held by too few");
    law(
        "any n-s survivors reach 1", [&] { return of_all(s, detail::reaches_one<Code>); },
        "some n-s survivors have no row that gives every partition once");
    law(
        "more survivors reach 1 as well",
        [&] { return detail::reaches_one(code, everyone) && (s == 0 || of_all(1, detail::reaches_one<Code>)); },
        "some set that lacks at most one worker has no decoding row");
    law(
        "neither order nor history changes a row", [&] { return of_all(s, detail::order_does_not_matter<Code>); },
        "the same survivors get different bits");
    law(
        "an approximate row is the closest", [&] { return s + 1 == n || of_all(s + 1, detail::is_closest<Code>); },
        "||aB - 1|| is not what was returned, or is not least");
    law(
        "an empty set of survivors is not decodable",
        [&] { return !code.is_decodable({}) && detail::refuses(code, {}); }, "a gradient is decoded from nothing");
    if constexpr (SmallSetCode<Code>)
        law(
            "fewer than least_survivors() are not decodable", [&] { return detail::needs_least_survivors(code, most); },
            "least_survivors() is above n-s, or a smaller set is decodable");
    law(
        "a worker survives once",
        [&] {
            return detail::refuses(code, {0, 0});
        },
        "a worker that is listed twice is accepted");
    law(
        "only workers survive", [&] { return detail::refuses(code, {n}); }, "a survivor that is no worker is accepted");
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/joint_aggregator_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Whether rotations and the reverse of the values give the same result, with bits of zeros but not of NaNs compared.
template <Element T, class A>
bool ignores_order(const A& aggregator, const std::vector<T>& values) {
    for (std::size_t count = 1; count <= values.size(); ++count) {
        std::vector<T> order(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
        std::vector<T> room = order;
        const T wanted = aggregator.combine(std::span<T>(room));
        for (std::size_t turn = 0; turn < 2 * count; ++turn) {
            std::rotate(order.begin(), order.begin() + 1, order.end());
            if (turn % 2 == 1) std::reverse(order.begin(), order.end());
            room = order;
            if (!is_same_value(aggregator.combine(std::span<T>(room)), wanted)) return false;
        }
    }
    return true;
}

template <Element T, class A>
bool agrees_with_all(const A& aggregator) {
    std::vector<T> samples = law_samples<T>();
    samples.push_back(std::numeric_limits<T>::max());
    if constexpr (std::floating_point<T>) samples.push_back(T(0.1));
    for (const T value : samples)
        for (std::size_t count = 1; count <= 9; ++count) {
            std::vector<T> equal(count, value);
            if (aggregator.combine(std::span<T>(equal)) != value) return false;
        }
    return true;
}

}  // namespace detail

/// Checks a `JointAggregator` against the laws of the concept, on elements of type T.
///
/// `visit(const char* name, const law_outcome&)` is called once per law.
template <Element T, JointAggregator<T> A, class Visit>
void for_each_joint_aggregator_law(const A& aggregator, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(A::name) + ": " + otherwise});
    };
    law("the order of contributions does not matter",
        detail::ignores_order<T>(aggregator, detail::law_samples<T>()) &&
            detail::ignores_order<T>(aggregator, detail::law_special_samples<T>()),
        "combine gives another value where ranks contribute the same values in another order");
    law("the result of equal contributions is that value", detail::agrees_with_all<T>(aggregator),
        "combine gives another value than the one that all contribute");
    law("a group of one rank or more is enough", aggregator.least_ranks() >= 1, "least_ranks() is less than 1");
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/mixing_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr std::uint64_t mixing_rounds_in_law = 40;

/// Returns the first defect among `size` ranks under some keys, or an empty string.
template <class M>
std::string defect_of_mixing(const M& mixing, int size) {
    for (std::uint64_t key = 0; key < 4; ++key) {
        const topology::mixing_verdict found =
            topology::verify_mixing(mixing, size, {.count = mixing_rounds_in_law}, random_key{key});
        if (found.ok) continue;
        std::string what = std::to_string(size) + " ranks, round " + std::to_string(found.round) + ", rank " +
                           std::to_string(found.rank);
        if (found.peer != no_rank) what += " and rank " + std::to_string(found.peer);
        return what + ": " + found.what;
    }
    return {};
}

/// An object that skips rounds, or is asked twice, gives the rows of one that is asked for all rounds of all ranks.
template <class M>
bool rows_depend_on_round_alone(const M& mixing, int size) {
    const random_key key{7};
    auto every = mixing.bind(size, key);
    mixing_row wanted, seen;
    for (std::uint64_t stride = 1; stride < 6; ++stride) {
        auto some = mixing.bind(size, key);
        auto all = every;
        for (std::uint64_t round = 0; round < mixing_rounds_in_law; ++round)
            for (rank_t rank = 0; rank < size; ++rank) {
                all.fill(round, rank, wanted);
                if (round % stride != 0 || rank != static_cast<rank_t>(stride) % size) continue;
                for (int again = 0; again < 2; ++again) {
                    some.fill(round, rank, seen);
                    if (!(seen == wanted)) return false;
                }
            }
    }
    return true;
}

}  // namespace detail

/// Checks a mixing against the laws of the concept for each of these numbers of ranks. Calls
/// `visit(const char* name, const law_outcome&)` once per law.
template <Mixing M, class Sizes, class Visit>
void for_each_mixing_law(const M& mixing, const Sizes& sizes, Visit&& visit) {
    law_outcome keeps_promises, is_function;
    for (const int size : sizes) {
        const std::string defect = detail::defect_of_mixing(mixing, size);
        if (keeps_promises.held && !defect.empty())
            keeps_promises = {.held = false, .what = std::string(M::name) + ": " + defect};
        if (is_function.held && !detail::rows_depend_on_round_alone(mixing, size))
            is_function = {.held = false,
                           .what = std::string(M::name) + ": with " + std::to_string(size) +
                                   " ranks a row depends on what was asked before"};
    }
    visit("rows of all ranks belong together and keep what the flags promise", keeps_promises);
    visit("a row depends on size, key, round and rank alone", is_function);
}

}}}  // namespace rill::RILL_ABI::testing

#ifndef RILL_SINGLE_TRAIN_DATA_ERROR_HPP
#define RILL_SINGLE_TRAIN_DATA_ERROR_HPP

// ===== rill/train/data_error.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A file that cannot be used; the message names the file, what was expected, what was found, and where.
class data_error : public std::runtime_error {
  public:
    data_error(const std::string& file, const std::string& problem)
        : std::runtime_error("rill: " + file + ": " + problem), file_(file) {}
    data_error(const std::string& file, const std::string& where, const std::string& expected, const std::string& found)
        : data_error(file, where + ": expected " + expected + ", found " + found) {}
    data_error(const std::string& file, std::uint64_t offset, const std::string& expected, const std::string& found)
        : data_error(file, "at byte " + std::to_string(offset), expected, found) {}

    const std::string& file() const noexcept { return file_; }

  private:
    std::string file_;
};

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_DATA_ERROR_HPP

#ifndef RILL_SINGLE_TRAIN_FILE_HPP
#define RILL_SINGLE_TRAIN_FILE_HPP

// ===== rill/train/file.hpp

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

[[noreturn]] inline void file_failed(const std::string& path, const char* what) {
    throw data_error(path, std::string(what) + ": " + std::generic_category().message(errno));
}

/// An open file; closes itself.
class descriptor {
  public:
    descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
    descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() { close(); }

    bool is_open() const { return number_ >= 0; }
    int get() const { return number_; }
    bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

  private:
    int number_;
};

/// How many bytes were written: all, or fewer if it failed, with the reason in `errno`.
inline std::size_t write_all(int file, byte_view bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

/// A new file whose name begins with `path`, and that name; no other process, of whichever host, writes it. Not open if
/// it failed, with the reason in `errno`.
inline std::pair<std::string, descriptor> make_partial(const std::string& path) {
    static std::atomic<unsigned> count{0};
    while (true) {
        std::string name =
            path + "." + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)) + ".partial";
        descriptor made(name, O_WRONLY | O_CREAT | O_EXCL);
        if (made.is_open() || errno != EEXIST) return {std::move(name), std::move(made)};
    }
}

inline bool write_durably(descriptor& file, byte_view bytes) {
    return write_all(file.get(), bytes) == bytes.size() && ::fsync(file.get()) == 0 && file.close();
}

inline void sync_directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const descriptor opened(directory, O_RDONLY | O_DIRECTORY);
    if (opened.is_open()) ::fsync(opened.get());  // not all file systems can; the file is replaced anyway
}

}  // namespace detail

/// All bytes of a file. Throws `data_error`.
inline std::vector<std::byte> read_file(const std::string& path) {
    const detail::descriptor file(path, O_RDONLY);
    struct stat status {};
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) detail::file_failed(path, "cannot be opened");
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) detail::file_failed(path, "cannot be read");
        if (count == 0) break;
        done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
}

/// Replaces a file, or makes it, in one step: whoever opens `path`, even after a crash, finds the old contents or the
/// new. Throws `data_error`; the old file is then untouched and no temporary file is left.
inline void replace_file(const std::string& path, byte_view bytes) {
    auto [partial, file] = detail::make_partial(path);
    if (!file.is_open()) detail::file_failed(path, "cannot be written");
    if (!detail::write_durably(file, bytes) || std::rename(partial.c_str(), path.c_str()) != 0) {
        const int reason = errno;
        ::unlink(partial.c_str());
        errno = reason;
        detail::file_failed(path, "cannot be written");
    }
    detail::sync_directory_of(path);
}

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_FILE_HPP

#ifndef RILL_SINGLE_TRAIN_CHECKPOINT_HPP
#define RILL_SINGLE_TRAIN_CHECKPOINT_HPP

// ===== rill/train/checkpoint.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

static_assert(std::endian::native == std::endian::little,
              "rill::checkpoint: files are little-endian, this host is not");

/// What a section can hold: integers, floating-point numbers, bytes.
template <class T>
concept Storable = (std::is_arithmetic_v<T> && !std::same_as<T, bool>) || std::same_as<T, std::byte>;

namespace detail {

/// How a section's elements are named in the file, and in messages.
template <Storable T>
constexpr std::uint32_t storage_code() {
    constexpr bool is_signed = std::is_signed_v<T> || std::same_as<T, char>;  // also where char has no sign
    const char kind = std::is_floating_point_v<T> ? 'f' : is_signed ? 'i' : 'u';
    return static_cast<std::uint32_t>(kind) << 8 | static_cast<std::uint32_t>(sizeof(T));
}
inline std::string storage_name(std::uint32_t code, std::uint64_t bytes) {
    const char* kind = code >> 8 == 'f' ? "float" : code >> 8 == 'i' ? "int" : "uint";
    const std::uint32_t size = code & 0xFF;
    return std::to_string(bytes / size) + " × " + kind + std::to_string(size * 8);
}

}  // namespace detail

/// A file of named arrays from which training resumes bit for bit.
///
/// Layout, version 1, little-endian: `"rillckpt"`, version (4 bytes), number of sections (4), size of the file (8); per
/// section: element code (4), length of its name (4), bytes of its values (8), name, values; last, a checksum of all
/// bytes before it (8). `load` and `open` validate everything.
class checkpoint {
  public:
    static constexpr std::uint32_t version = 1;

    /// Gathers copies of what is to be saved.
    class writer {
      public:
        writer() { clear(); }

        /// Forgets all sections and keeps the memory.
        void clear() {
            image_.clear();
            names_.clear();
            append(std::as_bytes(std::span(magic, magic_size)));
            image_.resize(header_size);
        }

        template <class Range>
            requires requires(const Range& values) { std::span(values); }
        void add(std::string_view name, const Range& values) {
            const std::span all(values);
            add_bytes(name, detail::storage_code<std::remove_cvref_t<decltype(all[0])>>(), std::as_bytes(all));
        }
        template <Storable T>
        void add(std::string_view name, const T& value) {
            add(name, std::span(&value, 1));
        }

        /// The bytes of the file.
        buffer bytes() const {
            buffer sealed = image_;
            put(sealed, 8, version);
            put(sealed, 12, static_cast<std::uint32_t>(names_.size()));
            put(sealed, 16, std::uint64_t{image_.size() + checksum_size});
            sealed.resize(image_.size() + checksum_size);
            put(sealed, image_.size(), checksum(byte_view(sealed).first(image_.size())));
            return sealed;
        }
        /// Writes a file in one step and durably. Throws `data_error`; what was at `path` is then untouched.
        void save(const std::string& path) const { replace_file(path, bytes()); }

      private:
        void add_bytes(std::string_view name, std::uint32_t code, byte_view values) {
            RILL_EXPECTS(std::find(names_.begin(), names_.end(), name) == names_.end(), "checkpoint: a new name");
            names_.emplace_back(name);
            append_value(code);
            append_value(static_cast<std::uint32_t>(name.size()));
            append_value(std::uint64_t{values.size()});
            append(std::as_bytes(std::span(name)));
            append(values);
        }
        void append(byte_view bytes) {
            const std::size_t at = image_.size();
            image_.resize(at + bytes.size());
            if (!bytes.empty()) std::memcpy(image_.data() + at, bytes.data(), bytes.size());
        }
        template <class T>
        void append_value(T value) {
            append(std::as_bytes(std::span(&value, 1)));
        }
        template <class T>
        static void put(buffer& image, std::size_t at, T value) {
            std::memcpy(image.data() + at, &value, sizeof value);
        }

        buffer image_;
        std::vector<std::string> names_;
    };

    checkpoint(checkpoint&&) = default;  // sections are views of the image: no copies
    checkpoint& operator=(checkpoint&&) = default;

    /// Reads a file. Throws `data_error` where it is missing or damaged.
    static checkpoint load(const std::string& path) { return checkpoint(path, read_file(path)); }

    /// Reads what `writer::bytes` has made. `name` stands for the path in errors. Throws `data_error` where it is
    /// damaged.
    static checkpoint of(std::string name, byte_view bytes) {
        return checkpoint(std::move(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
    }

    /// As `load`, but what `load` would throw is thrown by whoever reads the result. For a `restore` that is
    /// collective: a rank whose file is missing or damaged takes part, so that all ranks throw at once, and none waits
    /// for it.
    static checkpoint open(const std::string& path) {
        try {
            return load(path);
        } catch (const std::exception&) {
            return checkpoint(path, std::current_exception());
        }
    }

    const std::string& path() const { return path_; }
    std::size_t sections() const {
        require_readable();
        return sections_.size();
    }
    /// The names of all sections, in the order in which they were written.
    std::vector<std::string> names() const {
        require_readable();
        std::vector<std::string> all;
        all.reserve(sections_.size());
        for (const section& one : sections_) all.emplace_back(one.name);
        return all;
    }
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// Throws `data_error` if the name of a section begins with `prefix` and is none of `names`: who restores what
    /// these hold would lose what is in the other.
    void require_no_other(std::string_view prefix, std::span<const std::string> names) const {
        require_readable();
        for (const section& one : sections_)
            if (std::string_view(one.name).starts_with(prefix) &&
                std::find(names.begin(), names.end(), one.name) == names.end())
                throw data_error(path_, "section \"" + one.name + "\"", "nothing of this name",
                                 "state that would be lost");
    }
    /// How many values a section has; 0 if there is no such section.
    std::size_t count(std::string_view name) const {
        const section* const found = find(name);
        return found == nullptr ? 0 : found->values.size() / (found->code & 0xFF);
    }

    /// Fills `values`, a contiguous range. Throws `data_error`, and changes nothing, unless the section has this type
    /// and size.
    template <class Range>
        requires requires(Range& values) { std::as_writable_bytes(std::span(values)); }
    void read(std::string_view name, Range&& values) const {
        const std::span all(values);
        const byte_view stored =
            require(name, detail::storage_code<std::remove_cvref_t<decltype(all[0])>>(), all.size_bytes());
        if (!stored.empty()) std::memcpy(all.data(), stored.data(), stored.size());
    }
    template <Storable T>
    T read(std::string_view name) const {
        T value{};
        read(name, std::span(&value, 1));
        return value;
    }

  private:
    static constexpr char magic[] = "rillckpt";
    static constexpr std::size_t magic_size = 8;
    static constexpr std::size_t header_size = 24;
    static constexpr std::size_t checksum_size = 8;

    struct section {
        std::string name;
        std::uint32_t code = 0;
        byte_view values{};
    };

    checkpoint(std::string path, std::vector<std::byte> image) : path_(std::move(path)), image_(std::move(image)) {
        check_header();
        std::size_t at = header_size;
        for (std::uint32_t left = get<std::uint32_t>(12); left > 0; --left) at = take_section(at);
        if (at != end()) fail(at, "the end of the sections", "more bytes");
    }

    checkpoint(std::string path, std::exception_ptr refused) : path_(std::move(path)), refused_(std::move(refused)) {}

    std::size_t end() const { return image_.size() - checksum_size; }

    void check_header() const {
        if (image_.size() < header_size + checksum_size)
            fail(image_.size(), "a checkpoint's header", "the end of the file");
        if (std::memcmp(image_.data(), magic, magic_size) != 0) fail(0, "\"rillckpt\"", "other bytes");
        const auto found = get<std::uint32_t>(8);
        if (found != version) fail(8, "version " + std::to_string(version), std::to_string(found));
        const auto size = get<std::uint64_t>(16);
        if (size != image_.size())
            throw data_error(path_, "size", std::to_string(size) + " bytes, as its header says",
                             std::to_string(image_.size()));
        if (get<std::uint64_t>(end()) != checksum(byte_view(image_).first(end())))
            fail(end(), "the checksum of the contents", "another: the file is damaged");
    }

    // The checksum was right, so only a faulty writer can have made a wrong size. It is still checked before use.
    std::size_t take_section(std::size_t at) {
        constexpr std::size_t fixed = 16;
        if (end() - at < fixed) fail(at, "a section", "the end of the sections");
        const auto code = get<std::uint32_t>(at);
        const std::size_t name_size = get<std::uint32_t>(at + 4), size = get<std::uint64_t>(at + 8);
        const std::size_t width = code & 0xFF, room = end() - at - fixed;
        if (width == 0 || size % width != 0) fail(at, "an element type that divides the section's size", "another");
        if (name_size > room || size > room - name_size)
            fail(at, "a section of at most " + std::to_string(room) + " bytes", "a longer one");
        const std::size_t name_at = at + fixed, values_at = name_at + name_size;
        std::string name(reinterpret_cast<const char*>(image_.data()) + name_at, name_size);
        if (contains(name)) fail(at, "each section once", "\"" + name + "\" again");
        sections_.push_back({std::move(name), code, byte_view(image_).subspan(values_at, size)});
        return values_at + size;
    }

    void require_readable() const {
        if (refused_ != nullptr) std::rethrow_exception(refused_);
    }
    const section* find(std::string_view name) const {
        require_readable();
        for (const section& one : sections_)
            if (one.name == name) return &one;
        return nullptr;
    }

    byte_view require(std::string_view name, std::uint32_t code, std::size_t bytes) const {
        const section* found = find(name);
        const std::string where = "section \"" + std::string(name) + "\"";
        if (found == nullptr) throw data_error(path_, where, detail::storage_name(code, bytes), "no such section");
        if (found->code != code || found->values.size() != bytes)
            throw data_error(path_, where, detail::storage_name(code, bytes),
                             detail::storage_name(found->code, found->values.size()));
        return found->values;
    }

    template <class T>
    T get(std::size_t at) const {
        T value{};
        std::memcpy(&value, image_.data() + at, sizeof value);
        return value;
    }
    [[noreturn]] void fail(std::size_t at, const std::string& expected, const std::string& found) const {
        throw data_error(path_, std::uint64_t{at}, expected, found);
    }

    std::string path_;
    std::exception_ptr refused_{};  ///< why there is nothing to read
    std::vector<std::byte> image_;
    std::vector<section> sections_;
};

/// An object whose state can be saved in a checkpoint and restored. The names of its sections begin with `prefix`.
/// `save` and `restore` are templates over writer and reader, so that types of lower layers can have them too. A
/// `restore` that throws leaves the object as it was.
template <class S>
concept Persistent =
    requires(const S& constant, S& object, checkpoint::writer& out, const checkpoint& in, std::string_view prefix) {
        { constant.save(out, prefix) };
        { object.restore(in, prefix) };
    };

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_CHECKPOINT_HPP

#ifndef RILL_SINGLE_TRAIN_OPTIMIZER_HPP
#define RILL_SINGLE_TRAIN_OPTIMIZER_HPP

// ===== rill/train/optimizer.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters and then moves them along a gradient, in place.
///
/// `is_linear`: without weight decay, a step along `c·gradient` at rate 1 is one along `gradient` at rate c. Strategies
/// that send steps instead of gradients need it.
/// Laws (`testing::for_each_optimizer_law`): the same calls give the same bits; a copy goes on as its original; at
/// rate 0 nothing moves; an object that restores saved state goes on bit for bit, and a `restore` that throws changes
/// nothing; a `StreamOptimizer` moves along a stream as along the dense gradient, up to rounding.
template <class O, class T = float>
concept Optimizer = Regular<O> && std::floating_point<T> &&
                    requires(const O& policy, decltype(std::declval<const O&>().template bind<T>(std::size_t{}))& bound,
                             std::span<T> parameters, std::span<const T> gradient, double rate) {
                        { policy.template bind<T>(std::size_t{}) } -> std::copyable;
                        { policy.template bind<T>(std::size_t{}) } -> Persistent;
                        { bound.step(parameters, gradient, rate) };
                        requires std::same_as<decltype(O::is_linear), const bool>;
                    };

/// A bound optimizer that also takes a gradient as a `stream_view`, without a value for each parameter.
template <class Bound, class T, class View>
concept StreamOptimizer = requires(Bound& bound, std::span<T> parameters, const View& gradient, double rate) {
    bound.step(parameters, gradient, rate);
};

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_OPTIMIZER_HPP

// ===== rill/testing/optimizer_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Saved state in memory: a writer and a reader for `save` and `restore`. After `reads_left` reads each one throws.
class saved_in_memory {
  public:
    mutable int reads_left = -1;  ///< below 0: no limit

    template <class Values>
    void add(std::string_view name, const Values& values) {
        if constexpr (std::is_arithmetic_v<Values>) {
            add(name, std::span(&values, 1));
        } else {
            const byte_view bytes = std::as_bytes(std::span(values));
            if (!sections_.emplace(name, buffer(bytes.begin(), bytes.end())).second)
                throw law_failure("the section " + std::string(name) + " is saved twice");
        }
    }
    template <class Values>
    void read(std::string_view name, Values&& values) const {
        if (reads_left == 0) throw std::runtime_error("no more reads");
        --reads_left;
        const auto found = sections_.find(std::string(name));
        const auto room = std::as_writable_bytes(std::span(values));
        if (found == sections_.end() || found->second.size() != room.size())
            throw law_failure("the section " + std::string(name) + " is not restored as it was saved");
        if (!room.empty()) std::memcpy(room.data(), found->second.data(), room.size());
    }
    template <class T>
    T read(std::string_view name) const {
        T value{};
        read(name, std::span(&value, 1));
        return value;
    }
    const std::string& path() const { return path_; }
    std::size_t sections() const { return sections_.size(); }

  private:
    std::map<std::string, buffer> sections_;
    std::string path_ = "memory";
};

/// Parameters and an optimizer bound to them, which moves along random gradients.
template <class T, class Bound>
struct descent_in_law {
    Bound optimizer;
    std::vector<T> parameters;

    static std::vector<T> slope(std::size_t dimension, std::size_t step) {
        std::vector<T> made(dimension);
        const counter_rng draw(random_key{step});
        for (std::size_t i = 0; i < dimension; ++i) made[i] = static_cast<T>(draw.uniform(i)) - T{0.5};
        return made;
    }
    void go(std::size_t first, std::size_t last, double rate = 0.125) {
        for (std::size_t step = first; step < last; ++step) along(slope(parameters.size(), step), rate);
    }
    void along(const std::vector<T>& gradient, double rate) {
        optimizer.step(std::span<T>(parameters), std::span<const T>(gradient), rate);
    }
};

inline constexpr std::size_t optimizer_dimension = 77;  // blocks of any width, and a rest

template <class T, class O>
auto descent_of(const O& policy, std::size_t dimension = optimizer_dimension, T start = T{1}) {
    auto bound = policy.template bind<T>(dimension);
    return descent_in_law<T, decltype(bound)>{bound, std::vector<T>(dimension, start)};
}

template <class T, class O>
void check_saved_state(const O& policy) {
    auto original = descent_of<T>(policy);
    original.go(0, 5);
    saved_in_memory saved;
    original.optimizer.save(saved, "law.");
    auto resumed = descent_of<T>(policy);
    resumed.parameters = original.parameters;
    resumed.optimizer.restore(saved, "law.");
    original.go(5, 9);
    resumed.go(5, 9);
    expect(resumed.parameters == original.parameters, "other bits after a restore");
}

template <class T, class O>
void check_failing_restore(const O& policy) {
    auto other = descent_of<T>(policy);
    other.go(20, 23);
    saved_in_memory saved;
    other.optimizer.save(saved, "law.");
    for (int reads = 0; reads < static_cast<int>(saved.sections()); ++reads) {
        auto original = descent_of<T>(policy);
        original.go(0, 5);
        auto refused = original;
        saved.reads_left = reads;
        bool has_thrown = false;
        try {
            refused.optimizer.restore(saved, "law.");
        } catch (const std::runtime_error&) {
            has_thrown = true;
        }
        expect(has_thrown, "a restore reads less than was saved");
        original.go(5, 9);
        refused.go(5, 9);
        expect(refused.parameters == original.parameters, "a restore that throws has changed the state");
    }
}

/// Whether two numbers are equal but for rounding.
template <class T>
bool are_close(T a, T b) {
    return std::abs(a - b) <= 64 * std::numeric_limits<T>::epsilon() * (1 + std::abs(b));
}

/// Of a step along entries among zeros and of one along the same gradient, spread out.
template <class T, class O>
void check_streams(const O& policy) {
    auto dense = descent_of<T>(policy), sparse = dense;
    for (std::size_t step = 0; step < 4; ++step) {
        stream<T> gradient(optimizer_dimension);
        std::vector<T> spread(optimizer_dimension);
        for (std::size_t i = step; i < optimizer_dimension; i += 1 + i % 7)
            gradient.push_back(i, spread[i] = static_cast<T>(i) - T{40.5});
        dense.along(spread, 0.125);
        sparse.optimizer.step(std::span<T>(sparse.parameters), gradient.view(), 0.125);
        for (std::size_t i = 0; i < optimizer_dimension; ++i)
            expect(are_close(sparse.parameters[i], dense.parameters[i]),
                   "a stream moves otherwise than the gradient that it stands for");
    }
}

}  // namespace detail

/// Checks an optimizer against the laws of the concept, on parameters of type T. Calls `visit(const char* name, const
/// law_outcome&)` once per law.
template <class T = float, train::Optimizer<T> O, class Visit>
void for_each_optimizer_law(const O& policy, Visit&& visit) {
    const auto law = [&](const char* name, auto&& check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, outcome);
    };
    law("equal calls give equal bits", [&] {
        auto one = detail::descent_of<T>(policy), other = detail::descent_of<T>(O(policy));
        one.go(0, 5);
        other.go(0, 5);
        expect(one.parameters == other.parameters, "two objects with equal calls end at different parameters");
        expect(one.parameters != detail::descent_of<T>(policy).parameters, "steps move nothing");
    });
    law("a copy goes on as its original", [&] {
        auto one = detail::descent_of<T>(policy);
        one.go(0, 5);
        auto copy = one;
        one.go(5, 9);
        copy.go(5, 9);
        expect(copy.parameters == one.parameters, "a copy goes on by different bits");
    });
    law("no parameters are enough", [&] { detail::descent_of<T>(policy, 0).go(0, 2); });
    law("at rate 0 nothing moves", [&] {
        auto one = detail::descent_of<T>(policy);
        one.go(0, 5);
        const auto before = one.parameters;
        one.go(5, 9, 0);
        expect(one.parameters == before, "a step at rate 0 moves");
    });
    law("saved state goes on bit for bit", [&] { detail::check_saved_state<T>(policy); });
    law("a restore that throws changes nothing", [&] { detail::check_failing_restore<T>(policy); });
    law("a linear step scales with the gradient", [&] {
        if constexpr (O::is_linear) {
            // Weight decay has no part in the first step from 0; a power of two keeps the bits.
            auto one = detail::descent_of<T>(policy, detail::optimizer_dimension, T{0}), other = one;
            auto gradient = one.slope(detail::optimizer_dimension, 0);
            one.along(gradient, 0.125);
            for (T& each : gradient) each *= T{0.125};
            other.along(gradient, 1);
            expect(one.parameters == other.parameters, "a smaller gradient moves otherwise than a smaller rate");
        }
    });
    law("a stream moves as the dense gradient", [&] {
        using bound = decltype(policy.template bind<T>(1));
        if constexpr (train::StreamOptimizer<bound, T, stream_view<T, std::uint32_t>>) detail::check_streams<T>(policy);
    });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/shrink.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// The cases that are one step simpler than a given one, the boldest steps first.
class simpler_cases {
  public:
    explicit simpler_cases(const protocol_case& than) : than_(than) {
        without_faults();
        with([](protocol_case& c) { c.plain = true; });
        fewer_ranks();
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, than.size / 2, than.size - 1})
            if (size < than.size) with([&](protocol_case& c) { c.size = size; });
        with([](protocol_case& c) { c.faults.seed = 0; });
        for (std::size_t i = 0; i < than.faults.faults.size(); ++i) simpler_fault(i);
    }

    const std::vector<protocol_case>& all() const { return all_; }

  private:
    template <class Change>
    void with(Change&& change) {
        protocol_case changed = than_;
        change(changed);
        for (const fault& f : changed.faults.faults)
            if (rill::detail::trouble_with(f, changed.ranks) != nullptr) return;
        if (changed != than_) all_.push_back(std::move(changed));
    }

    void without_faults() {
        with([](protocol_case& c) { c.faults.faults.clear(); });
        for (std::size_t i = 0; i < than_.faults.faults.size(); ++i)
            with([&](protocol_case& c) {
                c.faults.faults.erase(c.faults.faults.begin() + static_cast<std::ptrdiff_t>(i));
            });
    }

    /// Lowers the number of ranks; ranks of faults that no longer exist become lower ones.
    void fewer_ranks() {
        for (const int ranks : {2, than_.ranks / 2, than_.ranks - 1}) {
            if (ranks < 2 || ranks >= than_.ranks) continue;
            with([&](protocol_case& c) {
                c.ranks = ranks;
                for (fault& f : c.faults.faults) {
                    f.from = std::min(f.from, ranks - 1);
                    f.to = std::min(f.to, ranks - 1);
                    if (f.from == f.to && f.from >= 0 && f.is_of_messages()) --f.from;
                }
            });
        }
    }

    void simpler_fault(std::size_t i) {
        const fault& now = than_.faults.faults[i];
        const auto set = [&](auto fault::*member, auto value) {
            with([&](protocol_case& c) { c.faults.faults[i].*member = value; });
        };
        const bool has_chance = now.kind <= fault::what::duplicate || now.kind == fault::what::reorder;
        if (has_chance) set(&fault::amount, 1.0);
        if (now.both_ways) set(&fault::both_ways, false);
        for (const auto begins : {std::int64_t{0}, now.begins.ns / 2}) set(&fault::begins, duration(begins));
        for (const auto skipped : {std::uint64_t{0}, now.skipped / 2, now.skipped - 1})
            if (skipped < now.skipped) set(&fault::skipped, skipped);
        if (now.longest.ns > 1) set(&fault::longest, duration(now.longest.ns / 2));
        for (rank_t r = 0; r < now.from; ++r)
            if (r != now.to) everywhere(now.from, r);
        for (rank_t r = 0; r < now.to; ++r)
            if (r != now.from) everywhere(now.to, r);
    }
    /// Replaces a rank by another one in all faults, so that a restart still concerns the rank that is killed.
    void everywhere(rank_t old, rank_t rank) {
        with([&](protocol_case& c) {
            for (fault& f : c.faults.faults) {
                if (f.from == old) f.from = rank;
                if (f.to == old) f.to = rank;
            }
        });
    }

    const protocol_case& than_;
    std::vector<protocol_case> all_;
};

}  // namespace detail

/// Simplifies a failing case as long as `still_fails(case)` returns true, in at most `most_runs` calls. Simpler is:
/// fewer faults, a plain network, fewer ranks, less data, and faults that begin at once, are certain, go one way, or
/// hit lower ranks.
template <class Fails>
protocol_case shrink(protocol_case failing, int most_runs, Fails&& still_fails) {
    for (bool got_simpler = true; got_simpler;) {
        got_simpler = false;
        protocol_case next = failing;
        const detail::simpler_cases simpler(failing);
        for (const protocol_case& each : simpler.all()) {
            if (most_runs-- <= 0) return failing;
            if (!still_fails(each)) continue;
            next = each;
            got_simpler = true;
            break;
        }
        failing = next;
    }
    return failing;
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/protocol_test.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {
/// Removes digits and dots. Two failures of one kind have the rest of their texts in common.
inline std::string without_numbers(std::string text) {
    std::erase_if(text, [](char c) { return ('0' <= c && c <= '9') || c == '.'; });
    return text;
}
}  // namespace detail

/// Plays a case in virtual time: runs `protocol(net, of, record)` on each rank, with the record of that rank. Equal
/// cases give equal records.
template <class Protocol>
run_record play(const protocol_case& of, Protocol&& protocol, const protocol_limits& limits = {}) {
    run_record seen;
    seen.same_first_notice = limits.control == simulated::control_plane::ideal;
    seen.ranks.resize(static_cast<std::size_t>(of.ranks));
    try {
        seen.report = simulated::run(of.ranks, network_of(of, limits), [&](auto& net) {
            rank_record& own = seen.ranks[static_cast<std::size_t>(net.rank())];
            protocol(net, of, own);
            own.has_ended = true;
        });
    } catch (const std::exception& e) {
        seen.ended_by = e.what();
    } catch (...) {
        seen.ended_by = "an exception that is no std::exception";
    }
    return seen;
}

/// Runs a protocol under random networks and faults and reports violations.
///
/// A report has the simplest case found that fails with the same text (numbers apart), and a line that replays it.
///
/// `protocol(net, of, record)` is the body of one rank on a `simulated::endpoint`: it computes on data of `of.size`,
/// draws what it needs from `of.key()`, makes each call through `record.attempt`, and lets no `rill::error` pass. All
/// that it does must depend on `of` alone: state that its ranks share must be made anew for each run, when rank 0
/// begins. `check(of, seen)` returns what is wrong with a run, or an empty string. Example:
///
///     testing::protocol_test test("my_sum");
///     for (testing::fault_kind kind : testing::every_fault_kind)
///         for (std::uint64_t seed = 0; seed < 100; ++seed)
///             CHECK(test.run(kind, seed, my_sum_on_one_rank) == "");
class protocol_test {
  public:
    /// `name` is unique in the program. A failing case is simplified in at most `most_reruns` runs.
    explicit protocol_test(std::string name, const protocol_limits& limits = {}, int most_reruns = 400)
        : name_(std::move(name)), limits_(limits), most_reruns_(most_reruns) {}

    /// The environment variable that names the case to replay. If it is set, nothing else is played.
    static constexpr const char* replay_variable = "RILL_REPLAY";
    static bool is_replay() { return std::getenv(replay_variable) != nullptr; }

    /// Plays the case that `draw_case(kind, seed)` draws. Returns the report of a failure, else an empty string.
    template <class Protocol, class Check = decltype(&exact_or_named_fault)>
    std::string run(fault_kind kind, std::uint64_t seed, Protocol&& protocol, Check&& check = &exact_or_named_fault) {
        return run(draw_case(kind, seed, limits_), protocol, check);
    }

    /// Plays the case `drawn`. Returns the report of a failure, else an empty string.
    template <class Protocol, class Check = decltype(&exact_or_named_fault)>
    std::string run(const protocol_case& drawn, Protocol&& protocol, Check&& check = &exact_or_named_fault) {
        const auto wrong_with = [&](const protocol_case& of) {
            last_ = play(of, protocol, limits_);
            return std::string(check(of, std::as_const(last_)));
        };
        if (is_replay()) return replayed(wrong_with);
        std::string wrong = wrong_with(drawn);
        if (wrong.empty()) return {};
        const auto fails = [&](const protocol_case& simpler) {
            return detail::without_numbers(wrong_with(simpler)) == detail::without_numbers(wrong);
        };
        const protocol_case simplest = shrink(drawn, most_reruns_, fails);
        return report(drawn, wrong) + "  simplest: " + report(simplest, wrong_with(simplest)) +
               "  replay:   " + replay_variable + "='" + name_ + ": " + to_string(simplest) + "' with this test\n";
    }

    /// The record of the case played last.
    const run_record& last() const { return last_; }
    const protocol_limits& limits() const { return limits_; }

  private:
    std::string report(const protocol_case& of, const std::string& wrong) const {
        return name_ + ": " + to_string(of) + "\n    " + wrong + "\n";
    }

    template <class WrongWith>
    std::string replayed(const WrongWith& wrong_with) {
        const std::string_view wanted = std::getenv(replay_variable);
        if (was_replayed_ || wanted.substr(0, name_.size() + 2) != name_ + ": ") return {};
        was_replayed_ = true;
        const protocol_case of = parse_protocol_case(wanted.substr(name_.size() + 2));
        const std::string wrong = wrong_with(of);
        return wrong.empty() ? wrong : report(of, wrong);
    }

    std::string name_;
    protocol_limits limits_;
    int most_reruns_;
    run_record last_{};
    bool was_replayed_ = false;
};

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/replica_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// What the laws of replicas try.
struct replica_trials {
    std::vector<int> ranks{1, 2, 3, 5};
    int serving = 0;          ///< how many ranks, the last ones, only serve: their `pull` never returns a model
    std::uint64_t seeds = 5;  ///< how often each law is tried with so many ranks, each time at other speeds
};

namespace detail {

inline constexpr std::size_t replica_coordinates = 7;
inline constexpr std::uint64_t most_pulls = 1000;

/// One run of a replica.
struct replica_case {
    int ranks = 1;
    int serving = 0;
    std::uint64_t seed = 0;
    bool one_ends = false;  ///< one rank ends the run for all, else all retire
    bool spoils = false;    ///< the first push of each rank holds a value that is not finite
    bool misuses = false;   ///< calls that are not allowed are tried in between

    /// The rank that ends the run.
    rank_t ender() const {
        return one_ends ? static_cast<rank_t>(seed % static_cast<std::uint64_t>(ranks - serving)) : no_rank;
    }
    std::uint64_t draw(rank_t rank, const char* what, std::uint64_t below) const {
        return random_sequence(random_key{seed}.derive(fingerprint(what), rank)).below(below);
    }
    /// How often a rank steps before it leaves; one that does not leave by itself must be told the end before.
    std::uint64_t steps(rank_t rank) const {
        if (one_ends && rank != ender()) return most_pulls;
        return (spoils ? 5 : 0) + draw(rank, "steps", 10);
    }
    std::size_t spoilt_coordinate(rank_t rank) const { return draw(rank, "coordinate", replica_coordinates); }

    /// Each gradient takes between 1 and 10 ms, and on some ranks three times as long.
    simulated::network network() const {
        return {.latency = microseconds(20), .computing = [*this](rank_t rank, std::uint64_t step, double) {
                    const double more = counter_rng(random_key{seed}.derive(rank)).uniform(step);
                    const std::int64_t factor = draw(rank, "pace", 3) == 0 ? 3 : 1;
                    return microseconds(factor * static_cast<std::int64_t>(1000 + 9000 * more));
                }};
    }
};

/// What one rank has seen of a run.
template <class T>
struct replica_account {
    std::uint64_t pushes = 0;
    std::vector<push_fate> fates;
    std::vector<std::uint64_t> versions;
    std::vector<T> model;
    time_point ended_at{};

    friend bool operator==(const replica_account&, const replica_account&) = default;
};

/// The loop of one rank.
template <class T, class R>
class replica_loop {
    static_assert(Replica<R, T>,
                  "rill::testing::for_each_replica_law: what `make` returns does not model Replica; see "
                  "rill/concept/replica.hpp");

  public:
    replica_loop(simulated::endpoint& net, const replica_case& of, R& replica, std::vector<T>& model,
                 replica_account<T>& seen)
        : net_(net), of_(of), replica_(replica), model_(model), seen_(seen), gradient_(model.size()) {}

    void run() {
        if (of_.misuses) refused("a version that was never pulled", [&] { replica_.push(gradient_, {.version = 0}); });
        while (const auto held = replica_.pull(model_)) {
            expect(net_.rank() < of_.ranks - of_.serving, "pull returns a model on a rank that only serves");
            expect(!has_left_, "pull returns a model after retire or end");
            expect(seen_.versions.size() < most_pulls, "pull returns models long after a rank has ended the run");
            seen_.versions.push_back(held->version);
            if (of_.misuses) misuse(*held);
            step(*held);
            take_fates();
        }
        finish();
    }

  private:
    void step(const held_version& held) {
        if (seen_.versions.size() <= of_.steps(net_.rank())) {
            net_.compute(1);
            const std::uint64_t pushes = 1 + of_.draw(net_.rank(), "pushes", 2);
            for (std::uint64_t i = 0; i < pushes; ++i) push(held);
            return;
        }
        net_.rank() == of_.ender() ? replica_.end() : replica_.retire();
        has_left_ = true;
        if (of_.misuses) refused("retire or end", [&] { replica_.push(gradient_, held); });
    }

    /// Some of the model, so that a run which has come off its way stays off, and something of its own.
    void push(const held_version& held) {
        const counter_rng draw(random_key{of_.seed}.derive(net_.rank(), seen_.pushes));
        for (std::size_t i = 0; i < gradient_.size(); ++i)
            gradient_[i] = model_[i] / 8 + static_cast<T>(draw.uniform(i) - 0.5);
        if (of_.spoils && seen_.pushes == 0)
            gradient_[of_.spoilt_coordinate(net_.rank())] =
                of_.seed % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
        replica_.push(std::as_const(gradient_), held);
        ++seen_.pushes;
    }

    /// One more than there may be shows that one was told twice.
    void take_fates() {
        while (seen_.fates.size() <= seen_.pushes) {
            const std::optional<push_fate> told = replica_.fate();
            if (!told) return;
            seen_.fates.push_back(*told);
        }
    }

    void finish() {
        take_fates();
        seen_.model = model_;
        seen_.ended_at = std::as_const(net_).now();
        expect(!replica_.pull(model_), "pull returns a model after it has returned nothing");
        expect(model_ == seen_.model, "pull writes another model after the final one");
        take_fates();
    }

    void misuse(const held_version& held) {
        std::vector<T> other(model_.size() + 1);
        refused("a gradient of another size", [&] { replica_.push(std::as_const(other), held); });
        refused("a model of another size", [&] { replica_.pull(other); });
        refused("a version that was never pulled", [&] { replica_.push(gradient_, {.version = held.version + 1}); });
    }
    template <class Call>
    void refused(const char* what, Call&& call) {
        const std::uint64_t sent = net_.counted().messages_sent;
        bool is_refused = false;
        try {
            call();
        } catch (const contract_violation&) {
            is_refused = true;
        }
        if (!is_refused) throw law_failure(std::string("a call is not refused: ") + what);
        expect_equal(net_.counted().messages_sent, sent, "messages that were sent before a call was refused");
    }

    simulated::endpoint& net_;
    const replica_case& of_;
    R& replica_;
    std::vector<T>& model_;
    replica_account<T>& seen_;
    std::vector<T> gradient_;
    bool has_left_ = false;
};

/// Runs the loop on all ranks. Throws the first law that a rank has found broken, or else what has ended the run.
template <class T, class Make>
std::vector<replica_account<T>> try_replica(const Make& make, const replica_case& of) {
    std::vector<replica_account<T>> all(static_cast<std::size_t>(of.ranks));
    std::optional<law_failure> broken;
    const auto on_one_rank = [&](simulated::endpoint& net) {
        std::vector<T> model(replica_coordinates, T{1});
        auto replica = make(net, std::as_const(model));
        try {
            replica_loop(net, of, replica, model, all[static_cast<std::size_t>(net.rank())]).run();
        } catch (const law_failure& found) {
            if (!broken) broken = found;
            throw;
        }
    };
    try {
        simulated::run(of.ranks, of.network(), on_one_rank);
    } catch (const std::exception&) {
        if (broken) throw law_failure(*broken);
        throw;
    }
    return all;
}

template <class T>
void each_push_has_one_fate(const std::vector<replica_account<T>>& all) {
    for (const replica_account<T>& seen : all) {
        std::vector<std::uint64_t> told(seen.pushes);
        for (const push_fate& fate : seen.fates) {
            expect(fate.push < seen.pushes, "a fate is told of a push that was never made");
            expect(++told[fate.push] == 1, "the fate of a push is told twice");
        }
        expect_equal(std::uint64_t{seen.fates.size()}, seen.pushes, "fates that were told of all pushes");
    }
}

template <class T>
void versions_do_not_fall(const std::vector<replica_account<T>>& all) {
    for (const replica_account<T>& seen : all)
        expect(std::is_sorted(seen.versions.begin(), seen.versions.end()), "a version is less than an earlier one");
}

template <class T>
void spoilt_pushes_are_refused(const std::vector<replica_account<T>>& all, const replica_case& of) {
    for (rank_t rank = 0; rank < of.ranks - of.serving; ++rank) {
        const replica_account<T>& seen = all[static_cast<std::size_t>(rank)];
        for (const push_fate& fate : seen.fates) {
            const bool is_spoilt = fate.push == 0;
            expect((fate.what == push_fate::outcome::not_finite) == is_spoilt,
                   "a push counts that is not finite, or one is refused that is");
            if (is_spoilt) expect_equal(fate.coordinate, of.spoilt_coordinate(rank), "the coordinate in a fate");
        }
        expect_equal(std::uint64_t{seen.versions.size()}, of.steps(rank) + 1, "models that a rank has pulled");
        for (const T value : seen.model) expect(value - value == 0, "the final model is not finite");
    }
}

}  // namespace detail

/// Checks a replica against the laws of the concept, in simulated networks whose ranks compute at random speeds.
///
/// `make(net, model)` makes one rank's replica on `simulated::endpoint& net`, with the first model
/// `const std::vector<T>& model`; it is collective. `visit(const char* name, const law_outcome&)` is called once per
/// law. What is refused is checked only where contracts are.
template <Element T = double, class Make, class Visit>
void for_each_replica_law(const Make& make, Visit&& visit, const replica_trials& trials = {}) {
    const auto law = [&](const char* name, detail::replica_case of, auto check) {
        law_outcome outcome;
        try {
            for (const int ranks : trials.ranks)
                for (of.seed = 0; of.seed < trials.seeds; ++of.seed) {
                    of.ranks = ranks;
                    of.serving = trials.serving;
                    check(detail::try_replica<T>(make, of), of);
                }
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, std::as_const(outcome));
    };
    const auto alone = [](auto check) { return [check](const auto& all, const detail::replica_case&) { check(all); }; };
    const auto nothing_more = [](const auto&, const detail::replica_case&) {};
    const auto one_fate = alone([](const auto& all) { detail::each_push_has_one_fate(all); });
    law("once all have retired, pull returns nothing on all ranks", {}, nothing_more);
    law("once one has ended the run, pull returns nothing on all ranks", {.one_ends = true}, nothing_more);
    law("each push has one fate, where all retire", {}, one_fate);
    law("each push has one fate, where one ends the run", {.one_ends = true}, one_fate);
    law("versions do not fall", {.one_ends = true}, alone([](const auto& all) { detail::versions_do_not_fall(all); }));
    law("what is not allowed is refused with nothing sent, and the run goes on", {.misuses = true}, one_fate);
    law("what is not finite is refused with its coordinate, and its rank goes on", {.spoils = true},
        [](const auto& all, const detail::replica_case& of) { detail::spoilt_pushes_are_refused(all, of); });
    law("the same run gives the same bits", {.one_ends = true}, [&](const auto& all, const detail::replica_case& of) {
        expect(all == detail::try_replica<T>(make, of), "a run that was repeated has another result");
    });
}

}}}  // namespace rill::RILL_ABI::testing

#ifndef RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP
#define RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP

// ===== rill/train/sparse_objective.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A function to minimise whose gradient is 0 but for a few coordinates: the mean loss of a model over the samples of a
/// `batch`. It may be an `Objective` too, by an overload of `gradient` that takes a span.
///
/// - `gradient(parameters, batch, output)` overwrites the stream with a sparse one over `[0, dimension())`. That has an
///   entry for each coordinate on which the loss of the batch depends. Other derivatives are 0. It returns the loss.
/// - Nothing in it passes over all parameters: what it computes and allocates depends on the batch alone. After the
///   first call with a batch of this size it allocates nothing.
/// - Else as `Objective`: it owns its scratch, and `gradient` and `loss` are pure functions of parameters and batch.
///
/// Laws: `testing::for_each_sparse_objective_law`.
template <class O>
concept SparseObjective = std::floating_point<typename O::scalar> && std::movable<O> &&
                          requires(O& objective, const O& constant, std::span<typename O::scalar> room,
                                   std::span<const typename O::scalar> parameters, const typename O::batch& samples,
                                   random_key key, stream<typename O::scalar>& output) {
                              { constant.dimension() } -> std::same_as<std::size_t>;
                              { constant.layers() } -> std::same_as<std::span<const layer>>;
                              { constant.initialise(room, key) };
                              { objective.loss(parameters, samples) } -> std::same_as<double>;
                              { objective.gradient(parameters, samples, output) } -> std::same_as<double>;
                          };

/// What a trainer can train.
template <class O>
concept Trainable = Objective<O> || SparseObjective<O>;

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP

// ===== rill/testing/sparse_objective_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// A sparse objective, two batches of it, and parameters at which its loss has derivatives.
template <class O>
struct sparse_objective_in_law {
    using scalar = typename O::scalar;
    using batch = typename O::batch;

    O& objective;
    const batch& samples;
    const batch& others;
    std::vector<scalar> at;

    sparse_objective_in_law(O& model, const batch& one, const batch& other)
        : objective(model), samples(one), others(other), at(model.dimension()) {
        const counter_rng draw(random_key{11});
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<scalar>(draw.uniform(i)) - scalar{0.5};
    }
    /// The gradient, which is checked to be a sparse stream.
    stream<scalar> gradient_of(const batch& of) {
        stream<scalar> made;
        objective.gradient(at, of, made);
        expect(!made.is_dense() && made.range() == segment{0, objective.dimension()},
               "the gradient is not a sparse stream over all parameters");
        const auto indices = made.indices();
        for (std::size_t e = 0; e < indices.size(); ++e)
            expect(indices[e] < objective.dimension() && (e == 0 || indices[e - 1] < indices[e]),
                   "the entries do not ascend within the parameters");
        return made;
    }
    double loss_at(std::size_t coordinate, scalar moved_by) {
        std::vector<scalar> moved = at;
        moved[coordinate] += moved_by;
        return objective.loss(moved, samples);
    }
    void check_overwrites() {
        const auto expected = gradient_of(samples);
        stream<scalar> used;
        for (auto& value : used.make_dense({0, objective.dimension() + 3})) value = scalar{9};
        objective.gradient(at, samples, used);
        expect(used == expected, "what the stream held before is in the gradient");
        objective.gradient(at, others, used);
        objective.gradient(at, samples, used);
        expect(used == expected, "another batch before makes another gradient");
    }
    /// Compares with differences of the loss: `step` is small, and rounding is smaller than what it makes.
    void check_derivatives() {
        const auto made = gradient_of(samples);
        const auto step = std::cbrt(std::numeric_limits<scalar>::epsilon());
        std::size_t entry = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
            const bool has_entry = entry < made.count() && made.indices()[entry] == i;
            const double derivative = has_entry ? static_cast<double>(made.values()[entry++]) : 0.0;
            const double above = loss_at(i, step), below = loss_at(i, -step);
            if (!has_entry) expect(above == below, "the loss depends on a coordinate without an entry");
            const double seen = (above - below) / (2 * static_cast<double>(step));
            expect(std::abs(seen - derivative) <= 50 * static_cast<double>(step) * (1 + std::abs(derivative)),
                   "an entry is not the derivative of the loss");
        }
    }
    void check_dense() {
        if constexpr (Objective<O>) {
            const auto made = gradient_of(samples);
            std::vector<scalar> dense(at.size()), spread(at.size());
            const double loss = objective.gradient(at, samples, std::span<scalar>(dense));
            expect(loss == objective.loss(at, samples), "the dense gradient returns another loss");
            for (std::size_t e = 0; e < made.count(); ++e) spread[made.indices()[e]] = made.values()[e];
            expect(spread == dense, "the dense gradient has other bits");
        }
    }
};

}  // namespace detail

/// Checks a sparse objective against the laws of the concept, at parameters in [-½, ½). `samples`, `others`: two
/// batches. The loss must be differentiable there. Calls `visit(const char* name, const law_outcome&)` once per law.
template <train::SparseObjective O, class Visit>
void for_each_sparse_objective_law(O& objective, const typename O::batch& samples, const typename O::batch& others,
                                   Visit&& visit) {
    using scalar = typename O::scalar;
    detail::sparse_objective_in_law<O> of(objective, samples, others);
    const auto law = [&](const char* name, auto&& check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, outcome);
    };
    law("the first parameters depend on the key alone", [&] {
        std::vector<scalar> one(objective.dimension(), scalar{1}), two(objective.dimension(), scalar{2});
        objective.initialise(one, random_key{5});
        objective.initialise(two, random_key{5});
        expect(one == two, "equal keys give different parameters");
    });
    law("the gradient is a sparse stream whose entries ascend", [&] { of.gradient_of(samples); });
    law("the gradient returns the loss", [&] {
        stream<scalar> made;
        const double loss = objective.gradient(of.at, samples, made);
        expect(loss == objective.loss(of.at, samples), "gradient and loss return different losses");
    });
    law("the gradient depends on parameters and batch alone", [&] { of.check_overwrites(); });
    law("the entries are the derivatives that are not always 0", [&] { of.check_derivatives(); });
    law("the dense gradient is the same", [&] { of.check_dense(); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/straggler_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr unsigned most_in_law = 6;  // number of children or ranks up to which all subsets are checked

/// Returns the numbers of the bits that are set in `set`.
inline std::vector<int> members_of(unsigned set) {
    std::vector<int> members;
    for (int i = 0; (set >> i) != 0; ++i)
        if ((set >> i & 1U) != 0) members.push_back(i);
    return members;
}

template <class C>
bool is_complete(const C& completion, unsigned expected, unsigned set, bool time_is_up) {
    const std::vector<int> in = members_of(set);
    return completion.is_complete({.expected = static_cast<int>(expected), .in = in, .time_is_up = time_is_up});
}

template <class C>
bool takes_all(const C& completion) {
    for (unsigned n = 0; n <= most_in_law; ++n)
        for (const bool time_is_up : {false, true})
            if (!is_complete(completion, n, (1U << n) - 1, time_is_up)) return false;
    return true;
}

template <class C>
bool stays_complete(const C& completion) {
    for (unsigned n = 0; n <= most_in_law; ++n)
        for (unsigned set = 0; set < 1U << n; ++set) {
            if (is_complete(completion, n, set, false) && !is_complete(completion, n, set, true)) return false;
            for (const bool time_is_up : {false, true})
                for (unsigned i = 0; i < n; ++i)
                    if (is_complete(completion, n, set, time_is_up) &&
                        !is_complete(completion, n, set | 1U << i, time_is_up))
                        return false;
        }
    return true;
}

template <class C>
bool patience_grows(const C& completion) {
    for (int height = 0; height < 20; ++height)
        if (completion.patience(height).ns < 0 || completion.patience(height + 1) < completion.patience(height))
            return false;
    return true;
}

inline constexpr std::uint32_t most_rounds_in_law = 200;

template <class S, class Says>
bool falls(const S& staleness, Says says) {
    for (std::uint32_t rounds = 0; rounds < most_rounds_in_law; ++rounds)
        if (says(staleness, rounds + 1) && !says(staleness, rounds)) return false;
    return true;
}

template <class T>
bool starts(const T& trigger, unsigned set, unsigned size, random_key key) {
    const std::vector<int> ready = members_of(set);
    return trigger.starts(std::vector<rank_t>(ready.begin(), ready.end()), static_cast<int>(size), key);
}

template <class T>
bool starts_with_all(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round)
            if (!starts(trigger, (1U << n) - 1, n, random_key{round})) return false;
    return true;
}

template <class T>
bool stays_started(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (unsigned set = 0; set < 1U << n; ++set)
            for (std::uint64_t round = 0; round < 20; ++round)
                for (unsigned i = 0; i < n; ++i)
                    if (starts(trigger, set, n, random_key{round}) &&
                        !starts(trigger, set | 1U << i, n, random_key{round}))
                        return false;
    return true;
}

/// The places among `size` that the trigger asks, as a set of bits.
template <class T>
unsigned asked(const T& trigger, unsigned size, random_key key) {
    unsigned set = 0;
    for (unsigned i = 0; i < size; ++i)
        if (trigger.asks(static_cast<rank_t>(i), static_cast<int>(size), key)) set |= 1U << i;
    return set;
}

template <class T>
bool asks_somebody(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round)
            if (asked(trigger, n, random_key{round}) == 0) return false;
    return true;
}

template <class T>
bool only_asked_count(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round) {
            const unsigned counts = asked(trigger, n, random_key{round});
            for (unsigned set = 0; set < 1U << n; ++set)
                if (starts(trigger, set, n, random_key{round}) != starts(trigger, set & counts, n, random_key{round}))
                    return false;
        }
    return true;
}

template <class B>
bool shares_are_positive(const B& backlog) {
    for (std::size_t count = 1; count < most_rounds_in_law; ++count) {
        if (!(backlog.weight(count) > 0) || !rill::detail::is_finite(backlog.weight(count))) return false;
        for (std::size_t i = 0; i < count; ++i)
            if (!(backlog.share(i, count) > 0) || !rill::detail::is_finite(backlog.share(i, count))) return false;
    }
    return true;
}

template <class B>
bool equal_gradients_stay(const B& backlog) {
    for (std::size_t count = 1; count < most_rounds_in_law; ++count) {
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += backlog.share(i, count);
        const double error = sum / backlog.weight(count) - 1;
        if (error > 1e-12 || error < -1e-12) return false;
    }
    return true;
}

/// Returns what is wrong with a tree of `size` ranks, or an empty string.
template <class Tree>
std::string defect_of(const Tree& tree, int size) {
    const auto at = [](rank_t rank, const char* what) { return "rank " + std::to_string(rank) + what; };
    if (tree.parent(size, 0) != no_rank) return at(0, " has a parent");
    for (rank_t rank = 0; rank < size; ++rank) {
        int height = 0;
        rank_t last = no_rank;
        for (int i = 0; i < tree.children(size, rank); ++i) {
            const rank_t child = tree.child(size, rank, i);
            if (child <= last || child >= size)
                return at(rank, " has children in another order, or that are not there");
            if (tree.parent(size, child) != rank) return at(child, " has another parent than that whose child it is");
            height = tree.height(size, child) >= height ? tree.height(size, child) + 1 : height;
            last = child;
        }
        if (tree.height(size, rank) != height) return at(rank, " has another height");
        if (rank == 0) continue;
        rank_t above = rank;
        for (int steps = 0; above > 0 && steps < size; ++steps) above = tree.parent(size, above);
        if (above != 0) return at(rank, " is not below rank 0");
        bool is_child = false;
        const rank_t parent = tree.parent(size, rank);
        for (int i = 0; i < tree.children(size, parent); ++i)
            is_child = is_child || tree.child(size, parent, i) == rank;
        if (!is_child) return at(rank, " is no child of its parent");
    }
    return {};
}

}  // namespace detail

// Each function below calls `visit(const char* name, const law_outcome&)` once per law.

/// Checks a completion against the laws of the concept.
template <Completion C, class Visit>
void for_each_completion_law(const C& completion, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(C::name) + ": " + otherwise});
    };
    law("all are enough", detail::takes_all(completion), "a gather from which nothing is missing is not complete");
    law("what is complete stays so", detail::stays_complete(completion),
        "a complete gather is not complete when more has come, or when time is up");
    law("patience does not fall with height", detail::patience_grows(completion),
        "patience is negative, or less further up");
}

/// Checks a staleness against the laws of the concept.
template <Staleness S, class Visit>
void for_each_staleness_law(const S& staleness, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(S::name) + ": " + otherwise});
    };
    law("what is on time counts", staleness.accepts(0), "accepts(0) is false");
    law("the older, the less it counts",
        detail::falls(staleness, [](const S& s, std::uint32_t age) { return s.accepts(age); }),
        "an age is accepted, and a smaller one is not");
    law("the further ahead, the sooner a rank waits",
        detail::falls(staleness, [](const S& s, std::uint32_t lag) { return s.may_lead(lag); }),
        "a rank may lead by some rounds, and not by fewer");
    if constexpr (OwnRoundStaleness<S>)
        law("own_round_only is true", !staleness.accepts(1) && staleness.may_lead(detail::most_rounds_in_law),
            "a contribution counts in another round than its own, though it says own_round_only");
}

/// Checks a trigger against the laws of the concept.
template <Trigger T, class Visit>
void for_each_trigger_law(const T& trigger, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(T::name) + ": " + otherwise});
    };
    law("all ranks start a round", detail::starts_with_all(trigger), "a round does not start though all are ready");
    law("what has started a round goes on to do so", detail::stays_started(trigger),
        "a round starts, and does not when one more is ready");
    law("somebody is asked", detail::asks_somebody(trigger), "no rank is asked");
    law("only those count that are asked", detail::only_asked_count(trigger),
        "whether a round starts depends on a rank that is not asked");
}

/// Checks a participation against the laws of the concept.
template <Participation P, class Visit>
void for_each_participation_law(const P& participation, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(P::name) + ": " + otherwise});
    };
    bool asks = true, ascends = true, repeats = true;
    for (int size = 0; size <= 20; ++size)
        for (std::uint64_t round = 0; round < 50; ++round) {
            std::vector<int> first{7, 7}, second;
            participation.choose(size, random_key{round}, first);
            participation.choose(size, random_key{round}, second);
            asks = asks && first.empty() == (size == 0);
            repeats = repeats && first == second;
            int before = -1;
            for (const int place : first) {
                ascends = ascends && before < place && place < size;
                before = place;
            }
        }
    law("somebody is asked", asks, "nobody is asked");
    law("places ascend and are those that there are", ascends, "places do not ascend, or are none");
    law("equal keys ask the same", repeats, "the same round asks others when it is asked again");
}

/// Checks a backlog against the laws of the concept.
template <Backlog B, class Visit>
void for_each_backlog_law(const B& backlog, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(B::name) + ": " + otherwise});
    };
    law("one gradient is sent as it is", backlog.share(0, 1) == 1 && backlog.weight(1) == 1,
        "one gradient alone has another share or weight than 1");
    law("shares and weights are positive", detail::shares_are_positive(backlog),
        "a share or a weight is not finite, or not above 0");
    law("equal gradients are their own mean", detail::equal_gradients_stay(backlog),
        "the shares do not add up to the weight");
}

/// Checks a tree of `size` ranks against the laws of the concept.
template <TreeTopology Tree, class Visit>
void for_each_tree_law(const Tree& tree, int size, Visit&& visit) {
    const std::string defect = detail::defect_of(tree, size);
    visit("parents, children and heights agree, and all stand below rank 0",
          law_outcome{.held = defect.empty(), .what = defect.empty() ? "" : std::string(Tree::name) + ": " + defect});
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/transport_archetypes.hpp

/// Types with what a concept of transports demands and nothing else, declared and not defined. Code that compiles with
/// them, in a `static_assert` or an uncalled function, asks for no more than the concept.
namespace rill { inline namespace RILL_ABI { namespace testing { namespace archetype {

/// Models `Transport`.
struct transport {
    struct message {
        rank_t source() const;
        byte_pieces pieces() const;
    };
    struct sending {
        bool done();
        bool wait(deadline until);
        void settle() noexcept;
    };

    rank_t rank() const;
    int size() const;
    time_point now() const;
    void sleep_until(time_point instant);
    traffic counted() const;

    sending post(rank_t peer, channel on, const byte_pieces& pieces);
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate);
    std::optional<message> receive(rank_t peer, channel on, deadline until);
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until);
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until);
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until);

    void announce(std::uint64_t context, const call_signature& call);
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until);
    abort_notice abort(const abort_notice& notice);
    std::optional<abort_notice> aborted(std::uint64_t context);
    std::uint64_t next_context(std::uint64_t key);
    void close(std::uint64_t context);
};

/// Models `EpochTransport`.
struct epoch_transport : transport {
    std::uint32_t epoch() const;
};

/// Models `ExpectingTransport`.
struct expecting_transport : transport {
    void expect(rank_t peer, channel on, std::span<const byte_span> targets);
    void forget(channel on) noexcept;
};

/// Models `ChunkingTransport`.
struct chunking_transport : transport {
    std::size_t chunk_bytes() const;
};

/// Models `ComputingTransport`.
struct computing_transport : transport {
    void compute(double work);
};

/// Models `TracedTransport`.
struct traced_transport : transport {
    struct recording {};

    recording span(const char* name) const;
};

/// Models `ConcurrentTransport`.
struct concurrent_transport : transport {
    struct activity {
        void join();
    };
    struct event {
        explicit event(concurrent_transport& net);
        void set();
        void reset();
        bool wait(deadline until);
    };
    template <class T>
    struct queue {
        explicit queue(concurrent_transport& net);
        void push(T value);
        std::optional<T> pop(deadline until);
        void close();
    };

    const void* this_activity() const;
    bool activities_run_alone() const;
    template <class Body>
    activity spawn(Body body);
};

/// Models `MonitoredTransport`.
struct monitored_transport : transport {
    std::uint64_t incarnation(rank_t peer) const;
    void monitor(channel on);
    void fence(rank_t peer, std::uint64_t incarnation);
};

/// Models `SharedMemoryTransport`.
struct shared_memory_transport : transport {
    struct window {
        static constexpr std::uint64_t places = 2;
        static constexpr std::size_t slot_bytes = 64;

        bool has_room(rank_t peer, std::uint64_t number, deadline until);
        void expose(const exposure& what);
        const exposure* exposed(rank_t peer, const call_signature& call, deadline until);
        bool enter(std::uint64_t number);
        void leave(std::uint64_t number) noexcept;
        void abandon(std::uint64_t number) noexcept;
        void pass(std::uint64_t number) noexcept;
        bool has_left(rank_t peer, std::uint64_t number, deadline until);
        void withdraw(std::uint64_t number) noexcept;
        std::uint64_t claim(rank_t peer, std::uint64_t number);
        byte_span slot(std::uint64_t number, std::size_t bytes);
        void prepare(std::uint64_t number);
        void count(std::uint64_t messages, std::uint64_t bytes);
    };

    window share(std::uint64_t context);
};

}}}}  // namespace rill::RILL_ABI::testing::archetype

// ===== rill/testing/detail/transport_laws_abort.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline abort_notice law_notice(std::uint64_t context, rank_t culprit) {
    return {.context = context,
            .operation = 4,
            .kind = failure::invalid_value,
            .culprit = culprit,
            .other = 0,
            .reason = "rank " + std::to_string(culprit) + " has had enough"};
}

/// Checks that `wait()` throws the error of `notice`.
template <class Wait>
void expect_ended(const abort_notice& notice, const char* kind, Wait wait) {
    try {
        wait();
    } catch (const invalid_value& thrown) {
        expect(thrown.notice() == notice, kind);
        return;
    }
    expect(false, kind);
}

/// The last rank aborts after all others have said that they are about to wait. They already wait, or find the notice
/// when they begin.
template <class Net, class Wait>
void ends_waits(Net& net, std::uint64_t context, const char* kind, Wait wait) {
    const channel ready{.context = law_context + 1, .tag = 40};
    const rank_t culprit = net.size() - 1;
    const abort_notice notice = law_notice(context, culprit);
    if (net.rank() != culprit) {
        post_number(net, culprit, ready, 0);
        expect_ended(notice, kind, wait);
        expect_ended(notice, kind, wait);  // a wait that begins after the abort
    } else {
        for (rank_t peer = 0; peer < culprit; ++peer) receive_number(net, peer, ready);
        net.sleep_until(net.now() + microseconds(300));  // so that they probably wait already; not needed
        expect(net.abort(notice) == notice, "abort returns another notice than the only one");
        expect_ended(notice, kind, wait);
    }
    expect(net.aborted(context) == notice, "aborted() returns another notice");
    if (context != every_context) {
        expect(!net.aborted(context + 7), "an abort reaches another context");
        meet(net, 1);
    } else {
        expect(net.aborted(law_context) == notice, "an abort of every context misses one");
    }
}

template <class Net>
void ends_receives(Net& net, std::uint64_t aborted, channel on) {
    ends_waits(net, aborted, "receive() survives an abort", [&] { net.receive(net.rank(), on, deadline::never); });
}

template <class Net>
void ends_all_kinds(Net& net) {
    const rank_t self = net.rank();
    std::uint64_t context = law_context + 10;
    const auto each = [&](const char* kind, auto wait) {
        context += 20;
        ends_waits(net, context, kind, [&] { wait(channel{.context = context, .tag = 0}); });
    };
    const std::span<const rank_t> set(&self, 1);
    each("any-of-set survives an abort", [&](channel on) { net.receive(set, on, deadline::never); });
    each("receive_latest survives an abort", [&](channel on) { net.receive_latest(set, on, deadline::never); });
    each("receive_into survives an abort", [&](channel on) { net.receive_into(self, on, {}, deadline::never); });
    each("inquire survives an abort", [&](channel on) { net.inquire(self, on.context, 1, deadline::never); });
    each("a polling receive survives an abort", [&](channel on) {
        while (true) {
            net.receive(self, on, deadline::immediate);
            net.sleep_until(net.now() + microseconds(50));
        }
    });
}

template <class Net>
void ends_sends(Net& net, std::size_t size) {
    const buffer lent = pattern(size, 1);
    auto sent = net.post(net.rank(), {law_context, 0}, byte_view(lent));
    ends_waits(net, law_context, "a send survives an abort", [&] { sent.wait(deadline::never); });
    sent.settle();
    expect(sent.done(), "a send cannot be settled after an abort");
}

template <class Net>
void ends_posts(Net& net, std::size_t bound) {
    const std::size_t left = 64;  // for the messages with which the ranks meet
    expect(net.post(net.rank(), {law_context, 0}, pattern(bound - left, 1)), "a mailbox with room refuses a message");
    ends_waits(net, law_context, "a post that waits for room survives an abort", [&] {
        net.post(net.rank(), {law_context, 1}, pattern(left + 1, 1), deadline::never);
    });
}

/// All ranks abort at once: one notice wins and stays, the `same` on all ranks.
template <class Net>
void agrees_on_first(Net& net, bool same) {
    const abort_notice won = net.abort(law_notice(law_context, net.rank()));
    expect(won.culprit >= 0 && won == law_notice(law_context, won.culprit), "abort returns a notice that nobody sent");
    expect(net.abort(law_notice(law_context, 77)) == won, "a second abort wins");
    expect(net.aborted(law_context) == won, "aborted() returns another notice than abort()");
    const channel on{.context = law_context + 1, .tag = 41};
    for (rank_t peer = 0; peer < net.size(); ++peer)
        post_number(net, peer, on, static_cast<std::uint32_t>(won.culprit));
    for (rank_t peer = 0; peer < net.size(); ++peer)
        if (const auto there = receive_number(net, peer, on); same)
            expect_equal(there, static_cast<std::uint32_t>(won.culprit), "culprit on another rank");
    expect(net.aborted(law_context) == won, "a later notice replaces the first");
}

/// Operations with lower tags than the failed one go on. If one of them fails later, all operations from its tag on
/// end.
template <class Net>
void spares_lower_tags(Net& net) {
    const rank_t self = net.rank();
    const channel earlier{law_context, 3}, failed{law_context, 4}, meeting{law_context + 1, 42};
    const auto meet_all = [&](std::uint32_t number) {
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, meeting, number);
        for (rank_t peer = 0; peer < net.size(); ++peer) receive_number(net, peer, meeting);
    };
    abort_notice later = law_notice(law_context, 0);
    later.first_tag = 4;
    if (self == 0) expect(net.abort(later) == later, "abort returns another notice than the only one");
    meet_all(1);
    expect_ended(later, "a wait survives an abort of its tag", [&] { net.receive(self, failed, deadline::never); });
    net.announce(law_context, {.number = 3});
    expect(net.inquire(self, law_context, 3, deadline::never).has_value(), "an abort ends an earlier inquiry");
    expect_ended(later, "an inquiry survives", [&] { net.inquire(self, law_context, 4, deadline::never); });
    post_number(net, (self + 1) % net.size(), earlier, 9);
    expect_equal(receive_number(net, (self + net.size() - 1) % net.size(), earlier), 9U, "a message of a lower tag");
    expect(net.aborted(law_context) == later, "aborted() returns another notice");
    meet_all(2);
    abort_notice sooner = law_notice(law_context, 1);
    sooner.first_tag = 3;
    sooner.reason = "an earlier one has failed as well";
    if (self == 1) expect(net.abort(sooner) == sooner, "an abort of lower tags does not count");
    meet_all(3);
    expect_ended(sooner, "a wait survives the second abort", [&] { net.receive(self, earlier, deadline::never); });
    expect(net.aborted(law_context) == later, "a second abort replaces the first");
}

template <class Net>
void keeps_first_of_context(Net& net) {
    const abort_notice narrow = law_notice(law_context, 0);
    const abort_notice wide = law_notice(every_context, 0);
    expect(!net.aborted(law_context), "a fresh context is aborted");
    net.abort(narrow);
    net.abort(wide);
    expect(net.aborted(law_context) == narrow, "a later abort of every context replaces the first notice of one");
    expect(net.aborted(law_context + 5) == wide, "an abort of every context misses one");
    expect(net.abort(law_notice(law_context + 6, 2)) == wide, "a context ends twice");
}

/// What the ranks of a run have seen. Each rank has its own slot, because all ranks may be threads of this process, or
/// only one may be in it.
class run_witness {
  public:
    explicit run_witness(int ranks) : ran_(static_cast<std::size_t>(ranks)), informed_(ran_.size()) {}

    void runs(rank_t rank) { ran_[static_cast<std::size_t>(rank)] = 1; }
    void is_informed(rank_t rank) { informed_[static_cast<std::size_t>(rank)] = 1; }
    bool has_run(rank_t rank) const { return ran_[static_cast<std::size_t>(rank)] != 0; }
    bool has_any() const { return std::count(ran_.begin(), ran_.end(), 1) > 0; }

    void expect_all_informed(rank_t but, bool one_process) const {
        if (one_process)
            expect_equal(std::count(ran_.begin(), ran_.end(), 1), std::ssize(ran_), "ranks that ran in this process");
        for (std::size_t rank = 0; rank < ran_.size(); ++rank)
            expect(ran_[rank] == informed_[rank] || static_cast<rank_t>(rank) == but,
                   "a rank does not hear who threw, and why");
    }

  private:
    std::vector<int> ran_, informed_;
};

inline bool tells_of(const error& heard, rank_t culprit, const char* reason) {
    return heard.culprit() == culprit && heard.notice().reason.find(reason) != std::string::npos;
}

/// Checks a run in which rank `thrower` throws std::out_of_range: the run rethrows it there; elsewhere it throws the
/// notice's error.
template <class Runner, class Body>
void expect_rethrown(Runner& runner, int ranks, rank_t thrower, const char* reason, run_witness& seen, Body body) {
    bool rethrown = false, told = false;
    try {
        runner(ranks, [&](auto& net) {
            seen.runs(net.rank());
            body(net);
        });
    } catch (const std::out_of_range& thrown) {
        rethrown = thrown.what() == std::string(reason);
    } catch (const peer_failure& heard) {
        told = tells_of(heard, thrower, reason);
    }
    if (seen.has_any()) expect(seen.has_run(thrower) ? rethrown : told, "a run does not rethrow what ended it");
}

/// Rank 1 throws. The others wait in `wait(net)`, which must end with the notice.
template <class Runner, class Wait>
void ends_with_exception(Runner& runner, bool one_process, Wait wait) {
    constexpr int ranks = 4;
    constexpr rank_t thrower = 1;
    const char* const reason = "index 7 is out of range";
    run_witness seen(ranks);
    expect_rethrown(runner, ranks, thrower, reason, seen, [&](auto& net) {
        if (net.rank() == thrower) throw std::out_of_range(reason);
        try {
            wait(net);
        } catch (const peer_failure& heard) {
            if (tells_of(heard, thrower, reason)) seen.is_informed(net.rank());
            throw;
        }
    });
    seen.expect_all_informed(thrower, one_process);
}

/// An error that names another rank as the culprit ends the run in that rank's name.
template <class Runner>
void ends_in_name_of_culprit(Runner& runner, bool one_process) {
    constexpr int ranks = 3;
    run_witness seen(ranks);
    rank_t blamed = no_rank;
    try {
        runner(ranks, [&](auto& net) {
            seen.runs(net.rank());
            if (net.rank() == 2) throw timeout(law_notice(law_context, 0));
            try {
                net.receive(net.rank(), {law_context + 3, 0}, deadline::never);
            } catch (const error& heard) {
                if (heard.culprit() == 0) seen.is_informed(net.rank());
                throw;
            }
        });
    } catch (const error& thrown) {
        blamed = thrown.culprit();
    }
    if (seen.has_any()) expect_equal(blamed, 0, "culprit of a run's error");
    seen.expect_all_informed(2, one_process);
}

}  // namespace detail

/// Checks the laws of aborts: which waits they end, on which ranks, and which culprit they name.
template <class Laws>
void abort_laws(const Laws& all) {
    using detail::law_context;
    for (const int ranks : {1, 2, 8})
        all.law("an abort ends a receive on every rank", ranks, [](auto& net) {
            detail::ends_receives(net, law_context, {law_context, 0});
        });
    all.law("an abort of every context ends a receive on every rank", 5, [](auto& net) {
        detail::ends_receives(net, every_context, {law_context, 0});
    });
    all.law("an abort ends every kind of wait", 3, [](auto& net) { detail::ends_all_kinds(net); });
    all.law("an abort spares the waits on lower tags", 3, [](auto& net) { detail::spares_lower_tags(net); });
    all.law("an abort ends the wait for a send", 3,
            [lent = detail::lent_size(all.limits())](auto& net) { detail::ends_sends(net, lent); });
    all.law("an abort of every context ends sleep_until", 3, [](auto& net) {
        detail::ends_waits(net, every_context, "sleep_until() survives an abort",
                           [&] { net.sleep_until(net.now() + seconds(3600)); });
    });
    if (const std::size_t bound = all.limits().mailbox_bytes; bound > 0)
        all.law("an abort ends the wait for room", 3, [bound](auto& net) { detail::ends_posts(net, bound); });
    for (const int ranks : {1, 2, 5})
        all.law("the first notice wins", ranks,
                [same = all.limits().same_first_notice](auto& net) { detail::agrees_on_first(net, same); });
    all.law("the first notice of a context stays", 1, [](auto& net) { detail::keeps_first_of_context(net); });
    const bool one_process = all.limits().one_process;
    all.law_of_run("an exception ends ranks that receive", 4, [one_process](auto& runner) {
        detail::ends_with_exception(runner, one_process, [](auto& net) {
            net.receive(net.rank(), {law_context, 0}, deadline::never);
        });
    });
    all.law_of_run("an exception ends ranks that sleep", 4, [one_process](auto& runner) {
        detail::ends_with_exception(runner, one_process, [](auto& net) { net.sleep_until(net.now() + seconds(3600)); });
    });
    all.law_of_run("an error ends the run in the name of its culprit", 3,
                   [one_process](auto& runner) { detail::ends_in_name_of_culprit(runner, one_process); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_activities.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

/// Several activities of each rank receive at once, each on a channel of its own.
template <class Net>
void receives_in_activities(Net& net) {
    constexpr std::uint32_t activities = 3, count = 20;
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    std::vector<typename Net::activity> running;
    for (std::uint32_t tag = 0; tag < activities; ++tag)
        running.push_back(net.spawn([&net, previous, tag] {
            for (std::uint32_t i = 0; i < count; ++i)
                expect_equal(receive_number(net, previous, {law_context, tag}), 10 * i + tag,
                             "a message of another activity");
        }));
    for (std::uint32_t i = 0; i < count; ++i)
        for (std::uint32_t tag = activities; tag-- > 0;) post_number(net, next, {law_context, tag}, 10 * i + tag);
    for (auto& each : running) each.join();
}

template <class Net>
void posts_in_activities(Net& net) {
    const channel on{.context = law_context, .tag = 50};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    auto sender = net.spawn([&] {
        const buffer lent = pattern(2000, 5);
        for (int i = 0; i < 20; ++i) {
            auto sent = net.post(next, on, byte_view(lent));
            expect(sent.wait(deadline::never), "a wait without deadline gives up");
        }
    });
    for (int i = 0; i < 20; ++i) {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && is_pattern(message->pieces(), 2000, 5), "a message arrives with other bytes");
    }
    sender.join();
}

template <class Net>
void signals(Net& net) {
    typename Net::event there{net}, back{net};
    int shared = 0;
    expect(!there.wait(deadline::immediate), "an event is set from the start");
    expect(!there.wait(net.now() + microseconds(100)), "an event sets itself");
    auto other = net.spawn([&] {
        for (int i = 1; i <= 10; ++i) {
            expect(there.wait(deadline::never), "a wait without deadline gives up");
            there.reset();
            expect_equal(shared, i, "what was written before an event was set");
            shared = -i;
            back.set();
        }
    });
    for (int i = 1; i <= 10; ++i) {
        shared = i;
        there.set();
        expect(back.wait(deadline::never), "a wait without deadline gives up");
        back.reset();
        expect_equal(shared, -i, "what was written before an event was set");
    }
    other.join();
    back.set();
    expect(back.wait(deadline::immediate) && back.wait(deadline::immediate), "a wait resets an event");
}

template <class Net>
void queues(Net& net) {
    typename Net::template queue<int> values{net};
    expect(!values.pop(deadline::immediate), "a queue makes up a value");
    expect(!values.pop(net.now() + microseconds(100)), "a queue makes up a value");
    int taken = 0;
    auto consumer = net.spawn([&] {
        while (const auto value = values.pop(deadline::never)) expect_equal(*value, taken++, "value of a queue");
    });
    for (int i = 0; i < 50; ++i) values.push(i);
    values.close();
    consumer.join();
    expect_equal(taken, 50, "values taken from a queue before its end");
    expect(!values.pop(deadline::never), "a closed queue makes up a value");
}

template <class Net>
void identifies_activities(Net& net) {
    const void* const own = net.this_activity();
    typename Net::template queue<const void*> identities{net};
    typename Net::event end{net};
    std::vector<const void*> known{own};
    std::vector<typename Net::activity> running;
    for (int i = 0; i < 3; ++i) {
        running.push_back(net.spawn([&] {
            const void* const self = net.this_activity();
            identities.push(self);
            end.wait(deadline::never);
            expect(net.this_activity() == self, "an activity has another identity after a wait");
        }));
        const auto identity = identities.pop(deadline::never);
        for (const void* const other : known) expect(identity != other, "two activities have one identity");
        known.push_back(*identity);
    }
    expect(net.this_activity() == own, "a rank's body has another identity after a wait");
    end.set();
    for (auto& each : running) each.join();
}

template <class Net>
void ends_meetings(Net& net) {
    typename Net::event never_set{net};
    typename Net::template queue<int> never_filled{net};
    typename Net::event set{net};
    typename Net::template queue<int> closed{net};
    set.set();
    closed.push(7);
    closed.close();
    auto other = net.spawn([&] {
        expect_ended(law_notice(every_context, net.size() - 1), "queue.pop() survives an abort",
                     [&] { never_filled.pop(deadline::never); });
    });
    ends_waits(net, every_context, "event.wait() survives an abort", [&] { never_set.wait(deadline::never); });
    other.join();
    expect(set.wait(deadline::never), "an event that is set is not so after an abort");
    expect_equal(closed.pop(deadline::never).value_or(0), 7, "a queue's value after an abort");
    expect(!closed.pop(deadline::never), "a closed queue does not end after an abort");
}

template <class Net>
void rethrows_on_join(Net& net) {
    auto failing = net.spawn([] { throw std::out_of_range("of an activity"); });
    bool rethrown = false;
    try {
        failing.join();
    } catch (const std::out_of_range&) {
        rethrown = true;
    }
    expect(rethrown, "join() does not rethrow");
}

/// An activity that waits for ever does not block an exception that destroys its handle.
template <class Runner>
void unwinds_past_activities(Runner& runner) {
    const char* const reason = "past an activity";
    run_witness seen(2);
    expect_rethrown(runner, 2, 0, reason, seen, [&](auto& net) {
        using net_type = std::remove_reference_t<decltype(net)>;
        if constexpr (ConcurrentTransport<net_type>) {
            typename net_type::event waits{net};
            auto stuck = net.spawn([&] {
                waits.set();
                net.receive(net.rank(), {law_context, 0}, deadline::never);
            });
            waits.wait(deadline::never);
            if (net.rank() == 0) throw std::out_of_range(reason);
            stuck.join();
        }
        if (net.rank() == 0) throw std::out_of_range(reason);
    });
}

}  // namespace detail

/// Checks the laws of `ConcurrentTransport`. They hold trivially for a transport that does not model it.
template <class Laws>
void activity_laws(const Laws& all) {
    const auto concurrent = [&](const char* name, int ranks, auto body) {
        all.law(name, ranks, [body](auto& net) {
            if constexpr (ConcurrentTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    for (const int ranks : {1, 3})
        concurrent("activities receive on channels of their own", ranks,
                   [](auto& net) { detail::receives_in_activities(net); });
    concurrent("activities post while others receive", 3, [](auto& net) { detail::posts_in_activities(net); });
    concurrent("an event wakes who waits for it", 2, [](auto& net) { detail::signals(net); });
    concurrent("a queue keeps order and ends", 2, [](auto& net) { detail::queues(net); });
    concurrent("activities have identities", 2, [](auto& net) { detail::identifies_activities(net); });
    concurrent("an abort of every context ends waits for events and queues", 3,
               [](auto& net) { detail::ends_meetings(net); });
    concurrent("join rethrows", 1, [](auto& net) { detail::rethrows_on_join(net); });
    all.law_of_run("an exception passes a waiting activity", 2,
                   [](auto& runner) { detail::unwinds_past_activities(runner); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_computing.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
void agrees_on_chunks(Net& net) {
    const std::size_t own = net.chunk_bytes();
    expect(own > 0, "chunks are empty");
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    // A number of the laws has 32 bits.
    post_number(net, next, {law_context, 0}, static_cast<std::uint32_t>(own));
    post_number(net, next, {law_context, 1}, static_cast<std::uint32_t>(std::uint64_t{own} >> 32U));
    expect_equal(receive_number(net, previous, {law_context, 0}), static_cast<std::uint32_t>(own),
                 "the low half of a peer's chunk_bytes()");
    expect_equal(receive_number(net, previous, {law_context, 1}), static_cast<std::uint32_t>(std::uint64_t{own} >> 32U),
                 "the high half of a peer's chunk_bytes()");
    expect_equal(net.chunk_bytes(), own, "chunk_bytes() after messages");
}

template <class Net>
void receives_what_came_while_computing(Net& net) {
    const channel on{.context = law_context, .tag = 0};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    for (std::uint32_t i = 0; i < 5; ++i) {
        post_number(net, next, on, i);
        const time_point before = net.now();
        net.compute(static_cast<double>(i));
        expect(before <= net.now(), "computing takes less than no time");
        expect_equal(receive_number(net, previous, on), i, "a message that came while a rank computed");
    }
}

}  // namespace detail

/// Laws of `ChunkingTransport` and `ComputingTransport`; they hold trivially for a transport that is neither.
template <class Laws>
void computing_laws(const Laws& all) {
    all.law("ranks agree on the size of chunks", 3, [](auto& net) {
        if constexpr (ChunkingTransport<std::remove_reference_t<decltype(net)>>) detail::agrees_on_chunks(net);
    });
    all.law("messages travel while a rank computes", 3, [](auto& net) {
        if constexpr (ComputingTransport<std::remove_reference_t<decltype(net)>>)
            detail::receives_what_came_while_computing(net);
    });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_control.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline call_signature numbered_call(std::uint64_t number, rank_t rank) {
    return {.number = number, .kind = operation::all_reduce, .dimension = 1000 + static_cast<std::uint64_t>(rank)};
}

template <class Net>
void tells_calls(Net& net) {
    for (std::uint64_t number = 1; number <= 3; ++number) {
        net.announce(law_context, numbered_call(number, net.rank()));
        for (rank_t peer = 0; peer < net.size(); ++peer) {
            const auto answer = net.inquire(peer, law_context, number, deadline::never);
            expect(answer.has_value(), "an inquiry without deadline comes back empty");
            expect(*answer == numbered_call(number, peer), "an inquiry answers with another call");
        }
    }
    expect(!net.inquire(net.rank(), law_context, 4, deadline::immediate), "an inquiry answers with an earlier call");
    expect(!net.inquire(net.rank(), law_context + 5, 1, deadline::immediate), "an inquiry looks into other contexts");
}

/// A state is replaced by the next one: an inquiry that waits does not return what an earlier one has heard.
template <class Net>
void tells_states(Net& net) {
    const std::uint64_t context = law_context + 7;
    const channel on{.context = law_context, .tag = 34};
    const auto meet_all = [&] {
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, on, 0);
        for (rank_t peer = 0; peer < net.size(); ++peer) receive_number(net, peer, on);
    };
    for (std::uint64_t state = 1; state <= 3; ++state) {
        net.announce(context, {.number = 1, .dimension = state});
        meet_all();
        for (rank_t peer = 0; peer < net.size(); ++peer) {
            const auto answer = net.inquire(peer, context, 1, deadline::never);
            expect(answer && answer->dimension == state, "an inquiry answers with a state that is past");
            expect(net.inquire(peer, context, 1, deadline::immediate) == answer, "what was heard is forgotten");
        }
        meet_all();
    }
}

/// Announces calls in any order: each is found as long as its number is among the `calls_remembered` highest.
template <class Net>
void remembers_calls(Net& net) {
    const std::uint64_t context = law_context + 6;
    constexpr std::uint64_t first = 100, last = first + calls_remembered - 1;
    const auto announce = [&](std::uint64_t number) { net.announce(context, numbered_call(number, net.rank())); };
    for (std::uint64_t number = first; number <= last; number += 2) announce(number);
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        expect(net.inquire(peer, context, last - 1, deadline::never).has_value(),
               "an inquiry without deadline comes back empty");
        const auto later = net.inquire(peer, context, first + 1, net.now() + microseconds(100));
        expect(later && *later == numbered_call(last - 1, peer),
               "an inquiry whose time is up does not answer with the latest call");
    }
    const channel on{.context = law_context, .tag = 32};
    const rank_t next = (net.rank() + 1) % net.size(), previous = (net.rank() + net.size() - 1) % net.size();
    for (int i = 1; i < net.size(); ++i) {  // all ranks have inquired before any goes on
        post_number(net, next, on, 0);
        receive_number(net, previous, on);
    }
    for (std::uint64_t number = last; number > first; number -= 2) announce(number);
    for (rank_t peer = 0; peer < net.size(); ++peer)
        for (std::uint64_t number = first; number <= last; ++number) {
            const auto answer = net.inquire(peer, context, number, deadline::never);
            expect(answer && *answer == numbered_call(number, peer), "an inquiry answers with another call");
        }
}

template <class Net>
void makes_contexts(Net& net) {
    const std::uint64_t keys[] = {0, 1, 1, 2, 0, 1};
    std::vector<std::uint64_t> made;
    for (const std::uint64_t key : keys) {
        if (net.rank() % 2 == 1) net.next_context(99);  // a key of some ranks only
        made.push_back(net.next_context(key));
    }
    expect(std::set(made.begin(), made.end()).size() == made.size(), "next_context gives a context twice");
    const channel on{.context = law_context, .tag = 30};
    for (const std::uint64_t context : made) {
        const auto low = static_cast<std::uint32_t>(context), high = static_cast<std::uint32_t>(context >> 32);
        for (const std::uint32_t half : {low, high}) {
            post_number(net, (net.rank() + 1) % net.size(), on, half);
            expect_equal(receive_number(net, (net.rank() + net.size() - 1) % net.size(), on), half,
                         "part of a context on another rank");
        }
    }
}

template <class Net>
void agrees_on_the_epoch(Net& net) {
    const channel on{.context = law_context, .tag = 33};
    post_number(net, (net.rank() + 1) % net.size(), on, epoch_of(net));
    expect_equal(receive_number(net, (net.rank() + net.size() - 1) % net.size(), on), epoch_of(net),
                 "the epoch of another rank");
}

template <class Net>
void counts(Net& net) {
    const channel on{.context = law_context, .tag = 31};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const traffic before = net.counted();
    const buffer lent = pattern(300, 1);
    byte_pieces pieces(byte_view(lent).first(100));
    pieces.push(byte_view(lent).subspan(100));
    auto first = net.post(next, on, pieces);
    auto second = net.post(next, on, byte_view(lent));
    expect(net.post(next, on, pattern(50, 2), deadline::never), "a post without deadline gives up");
    const traffic sent = net.counted() - before;
    expect_equal(sent.messages_sent, std::uint64_t{3}, "messages counted as sent");
    expect_equal(sent.bytes_sent, std::uint64_t{650}, "bytes counted as sent");
    expect_equal(sent.messages_received, std::uint64_t{0}, "messages counted as received before they are");
    buffer into(300);
    const byte_span target(into);
    expect(net.receive_into(previous, on, {&target, 1}, deadline::never), "a message is lost");
    for (int i = 0; i < 2; ++i) expect(net.receive(previous, on, deadline::never).has_value(), "a message is lost");
    expect(!net.receive(previous, on, deadline::immediate), "a message comes twice");
    const traffic all = net.counted() - before;
    expect_equal(all.messages_received, std::uint64_t{3}, "messages counted as received");
    expect_equal(all.bytes_received, std::uint64_t{650}, "bytes counted as received");
    expect(first.wait(deadline::never) && second.wait(deadline::never), "a send that was received is not done");
}

}  // namespace detail

/// Checks the laws of the control channel: `announce`, `inquire`, contexts.
template <class Laws>
void control_laws(const Laws& all) {
    for (const int ranks : {1, 2, 5})
        all.law("an inquiry learns what was announced", ranks, [](auto& net) { detail::tells_calls(net); });
    all.law("an inquiry learns the state that holds", 3, [](auto& net) { detail::tells_states(net); });
    all.law("a transport remembers the latest calls", 3, [](auto& net) { detail::remembers_calls(net); });
    all.law("next_context agrees on all ranks", 3, [](auto& net) { detail::makes_contexts(net); });
    all.law("the epoch is the same on all ranks", 3, [](auto& net) { detail::agrees_on_the_epoch(net); });
    all.law("messages and bytes are counted", 3, [](auto& net) { detail::counts(net); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_deadlines.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
void gives_up(Net& net, deadline until) {
    const channel on{.context = law_context, .tag = 20};
    const rank_t self = net.rank();
    expect(!net.receive(self, on, until), "a receive makes up a message");
    expect(!net.receive(std::span(&self, 1), on, until), "any-of-set makes up a message");
    expect(!net.receive(std::span<const rank_t>(), on, until), "a receive from nobody makes up a message");
    expect(!net.receive_latest(std::span(&self, 1), on, until), "receive_latest makes up a message");
    expect(!net.receive_into(self, on, {}, until), "receive_into makes up a message");
    expect(!net.inquire(self, on.context + 100, 1, until), "inquire makes up a call");
    if (!until.is_immediate()) expect(net.now() >= until.at, "a wait gives up before its deadline");
}

template <class Net>
void gives_up_in_time(Net& net) {
    gives_up(net, deadline::immediate);
    gives_up(net, net.now());
    gives_up(net, net.now() + microseconds(200));
    const time_point later = net.now() + microseconds(200);
    net.sleep_until(later);
    expect(net.now() >= later, "sleep_until wakes early");
}

template <class Net>
void receives_after_giving_up(Net& net) {
    const channel on{.context = law_context, .tag = 21};
    const channel signal{.context = law_context, .tag = 22};
    if (net.rank() == 0) {
        expect(!net.receive(1, on, net.now() + microseconds(100)), "a message comes before it is sent");
        post_number(net, 1, signal, 0);
        expect_equal(receive_number(net, 1, on), 5U, "the message after a deadline");
    } else if (net.rank() == 1) {
        receive_number(net, 0, signal);
        post_number(net, 0, on, 5);
    }
}

template <class Net>
void polls(Net& net) {
    const channel on{.context = law_context, .tag = 23};
    if (net.rank() != 0) return post_number(net, 0, on, 6);
    while (true) {
        if (const auto message = net.receive(1, on, deadline::immediate)) {
            expect_equal(number_in(*message), 6U, "a polled message");
            return;
        }
        net.sleep_until(net.now() + microseconds(50));
    }
}

template <class Net>
void sends_to_nobody_waiting(Net& net) {
    const channel on{.context = law_context, .tag = 24};
    for (rank_t peer = 0; peer < net.size(); ++peer)
        for (std::uint32_t i = 0; i < 20; ++i) post_number(net, peer, on, i);
    if (net.rank() == 0) net.close(on.context);
}

template <class Net>
void drops_on_close(Net& net) {
    const channel closing{.context = law_context, .tag = 25};
    const channel staying{.context = law_context + 5, .tag = 25};
    post_number(net, net.rank(), closing, 1);
    post_number(net, net.rank(), staying, 2);
    net.close(closing.context);
    expect(!net.receive(net.rank(), closing, deadline::immediate), "a message outlives its context");
    expect_equal(receive_number(net, net.rank(), staying), 2U, "after another context is closed, a message");
}

template <class Net>
bool refused_intact(Net& net, channel on, std::size_t size, deadline until) {
    buffer bytes = pattern(size, 8);
    if (net.post(net.rank(), on, std::move(bytes), until)) return false;
    // NOLINTNEXTLINE(bugprone-use-after-move): the law says that a refusal moves nothing
    expect(bytes == pattern(size, 8), "a refused buffer is changed");
    return true;
}

template <class Net>
void bounds_mailboxes(Net& net, std::size_t bound) {
    const channel on{.context = law_context, .tag = 26};
    const rank_t self = net.rank();
    const std::size_t half = bound / 2;
    const auto take = [&] { expect(net.receive(self, on, deadline::never).has_value(), "a message is lost"); };
    expect(net.post(self, on, pattern(half, 1)) && net.post(self, on, pattern(bound - half, 2)),
           "a mailbox with room refuses a message");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    expect(refused_intact(net, on, 1, net.now() + microseconds(100)), "a full mailbox takes a message");
    const buffer lent = pattern(bound, 3);
    auto sent = net.post(self, {on.context, on.tag + 1}, byte_view(lent));
    expect(net.receive(self, {on.context, on.tag + 1}, deadline::never).has_value(), "a lent message needs room");
    take();
    expect(net.post(self, on, pattern(half, 4)), "room is not given back");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    take();
    expect(refused_intact(net, on, 2 * bound, deadline::immediate), "a message above the bound fills a mailbox");
    take();
    expect(net.post(self, on, pattern(2 * bound, 5)), "an empty mailbox refuses a message above its bound");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    take();
}

template <class Net>
void waits_for_room(Net& net, std::size_t bound) {
    const channel on{.context = law_context, .tag = 28};
    constexpr std::uint64_t count = 10;
    if (net.rank() != 0) {
        for (std::uint64_t i = 0; i < count; ++i)
            expect(net.post(0, on, pattern(bound / 2 + 1, i), deadline::never), "a post without deadline gives up");
        return;
    }
    for (std::uint64_t i = 0; i < count; ++i)
        for (rank_t peer = 1; peer < net.size(); ++peer) {
            const rank_t peers[] = {1, 2};
            const auto message = net.receive(peers, on, deadline::never);
            expect(message && message->pieces().size_bytes() == bound / 2 + 1, "a message is lost");
        }
}

template <class Net>
void frees_room_on_close(Net& net, std::size_t bound) {
    expect(net.post(net.rank(), {law_context, 0}, pattern(bound, 1)), "an empty mailbox refuses a message");
    net.close(law_context);
    expect(net.post(net.rank(), {law_context + 5, 0}, pattern(bound, 1)), "a closed context keeps its room");
}

}  // namespace detail

/// Checks the laws of deadlines and of full mailboxes.
template <class Laws>
void deadline_laws(const Laws& all) {
    all.law("a passed deadline is an empty result", 2, [](auto& net) { detail::gives_up_in_time(net); });
    all.law("a message is received after a deadline has passed", 2,
            [](auto& net) { detail::receives_after_giving_up(net); });
    all.law("an immediate deadline polls", 2, [](auto& net) { detail::polls(net); });
    all.law("messages that nobody receives hold nobody up", 3, [](auto& net) { detail::sends_to_nobody_waiting(net); });
    all.law("close drops the messages of its context", 1, [](auto& net) { detail::drops_on_close(net); });
    const std::size_t bound = all.limits().mailbox_bytes;
    if (bound == 0) return;
    all.law("mailboxes are bounded", 1, [bound](auto& net) { detail::bounds_mailboxes(net, bound); });
    all.law("a post waits for room", 3, [bound](auto& net) { detail::waits_for_room(net, bound); });
    all.law("close gives room back", 1, [bound](auto& net) { detail::frees_room_on_close(net, bound); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_messages.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
using sending_of = typename Net::sending;

inline std::vector<rank_t> all_ranks(int size) {
    std::vector<rank_t> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), rank_t{0});
    return ranks;
}

/// Every rank posts `size` bytes to every rank, itself included, then receives from each.
template <class Net>
void exchange_with_all(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 1};
    const buffer mine = pattern(size, static_cast<std::uint64_t>(net.rank()));
    std::vector<sending_of<Net>> sends;
    sends.reserve(static_cast<std::size_t>(net.size()));
    for (rank_t peer = 0; peer < net.size(); ++peer) sends.push_back(net.post(peer, on, byte_view(mine)));
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        const auto message = net.receive(peer, on, deadline::never);
        expect(message && message->source() == peer, "a message names another source");
        expect(is_pattern(message->pieces(), size, static_cast<std::uint64_t>(peer)),
               "a message arrives with other bytes");
    }
    for (auto& each : sends) expect(each.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void pass_around_ring(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 2};
    const int ranks = net.size();
    const buffer mine = pattern(size, 7);
    auto sent = net.post((net.rank() + 1) % ranks, on, byte_view(mine));
    buffer incoming(size);
    const byte_span target(incoming);
    expect(net.receive_into((net.rank() + ranks - 1) % ranks, on, {&target, 1}, deadline::never),
           "a receive without deadline comes back empty");
    expect(incoming == mine, "a message arrives with other bytes");
    expect(sent.wait(deadline::never), "a send that was received is not done");
}

/// Two ranks post, then receive: this rank posts `size` bytes, the other one `theirs`.
template <class Net>
void crosses(Net& net, std::size_t size, std::size_t theirs) {
    const channel on{.context = law_context, .tag = 2};
    const rank_t other = 1 - net.rank();
    const buffer mine = pattern(size, 7);
    auto sent = net.post(other, on, byte_view(mine));
    {
        const auto message = net.receive(other, on, deadline::never);
        expect(message.has_value(), "a receive without deadline comes back empty");
        expect(is_pattern(message->pieces(), theirs, 7), "a message arrives with other bytes");
    }
    expect(sent.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void keeps_order(Net& net) {
    constexpr std::uint32_t count = 50;
    for (std::uint32_t i = 0; i < count; ++i)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            for (std::uint32_t tag = 0; tag < 2; ++tag)
                post_number(net, peer, {.context = law_context, .tag = tag}, 2 * i + tag);
    for (std::uint32_t tag = 2; tag-- > 0;)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            for (std::uint32_t i = 0; i < count; ++i)
                expect_equal(receive_number(net, peer, {.context = law_context, .tag = tag}), 2 * i + tag,
                             "messages of one sender and channel change their order");
}

/// Borrowed and handed-over messages share one order.
template <class Net>
void keeps_order_of_both_kinds(Net& net) {
    const channel on{.context = law_context, .tag = 3};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const buffer lent[2] = {number_message(0), number_message(2)};
    auto first = net.post(next, on, byte_view(lent[0]));
    post_number(net, next, on, 1);
    auto third = net.post(next, on, byte_view(lent[1]));
    post_number(net, next, on, 3);
    for (std::uint32_t i = 0; i < 4; ++i)
        expect_equal(receive_number(net, previous, on), i, "lent and handed-over messages change their order");
    expect(first.wait(deadline::never) && third.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void separates_channels(Net& net) {
    const channel channels[] = {{law_context, 0}, {law_context, 1}, {law_context + 5, 0}, {law_context + 5, 1}};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    for (std::uint32_t i = 0; i < 3; ++i) post_number(net, next, channels[i], i);
    for (std::uint32_t i = 3; i-- > 0;)
        expect_equal(receive_number(net, previous, channels[i]), i, "a message comes by another channel");
    meet(net, 0);
    for (const channel on : channels)
        expect(!net.receive(previous, on, deadline::immediate), "a message comes by a channel nobody used");
}

template <class Net>
void takes_from_any(Net& net) {
    const channel on{.context = law_context, .tag = 4};
    constexpr std::uint32_t each = 5;
    if (net.rank() != 0) {
        for (std::uint32_t i = 0; i < each; ++i) post_number(net, 0, on, i);
        return;
    }
    std::vector<rank_t> peers;
    for (rank_t rank = 1; rank < net.size(); ++rank) peers.push_back(rank);
    std::vector<std::uint32_t> seen(static_cast<std::size_t>(net.size()));
    for (std::size_t i = 0; i < peers.size() * each; ++i) {
        const auto message = net.receive(peers, on, deadline::never);
        expect(message && message->source() > 0 && message->source() < net.size(), "any-of-set names a foreign source");
        expect_equal(number_in(*message), seen[static_cast<std::size_t>(message->source())]++,
                     "any-of-set loses the order of a source");
    }
}

template <class Net>
void leaves_others_alone(Net& net) {
    const channel on{.context = law_context, .tag = 5};
    if (net.rank() != 0) return post_number(net, 0, on, static_cast<std::uint32_t>(net.rank()));
    std::vector<rank_t> odd, even;
    for (rank_t rank = 1; rank < net.size(); ++rank) (rank % 2 == 1 ? odd : even).push_back(rank);
    for (const auto* set : {&even, &odd})
        for (std::size_t i = 0; i < set->size(); ++i) {
            const auto message = net.receive(*set, on, deadline::never);
            expect(message && message->source() % 2 == set->front() % 2, "a message comes from outside the set");
        }
}

template <class Net>
void takes_latest(Net& net) {
    const channel on{.context = law_context, .tag = 8};
    const channel other{.context = law_context, .tag = 9};
    if (net.rank() != 0) {
        for (std::uint32_t i = 0; i < 4; ++i) post_number(net, 0, on, i);
        post_number(net, 0, other, 9);
        return meet(net, 0);
    }
    meet(net, 0);
    for (rank_t peer = 1; peer < net.size(); ++peer) {
        // The meeting does not imply that all messages have arrived: only messages of one channel are ordered.
        std::uint32_t newest = 0;
        while (newest != 3) {
            const auto message = net.receive_latest({&peer, 1}, on, deadline::never);
            expect(message && message->source() == peer, "receive_latest names another source");
            const std::uint32_t value = number_in(*message);
            expect(newest <= value, "receive_latest goes back in time");
            newest = value;
        }
        expect(!net.receive(peer, on, deadline::immediate), "receive_latest leaves an older message");
        expect_equal(receive_number(net, peer, other), 9U, "receive_latest takes from another channel");
    }
    const auto peers = all_ranks(net.size());
    expect(!net.receive_latest(peers, on, deadline::immediate), "receive_latest makes up a message");
}

template <class Net>
void takes_itself(Net& net) {
    const channel on{.context = law_context, .tag = 10};
    const buffer lent = pattern(100'000, 3);
    auto sent = net.post(net.rank(), on, byte_view(lent));
    post_number(net, net.rank(), on, 5);
    {
        const auto message = net.receive(net.rank(), on, deadline::never);
        expect(message && message->source() == net.rank(), "a message to itself has another source");
        expect(same_bytes(message->pieces(), lent), "a message to itself arrives with other bytes");
    }
    expect(sent.wait(deadline::never) && sent.done(), "a message to itself is never done");
    expect_equal(receive_number(net, net.rank(), on), 5U, "the second message to itself");
}

template <class Net>
void carries_nothing(Net& net) {
    const channel on{.context = law_context, .tag = 11};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    auto no_piece = net.post(next, on, byte_pieces());
    auto empty_piece = net.post(next, on, byte_view());
    expect(net.post(next, on, buffer()), "an empty message does not fit into a mailbox");
    auto into = net.post(next, on, byte_view());
    for (int i = 0; i < 3; ++i) {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && message->pieces().size_bytes() == 0, "an empty message arrives with bytes");
    }
    expect(net.receive_into(previous, on, {}, deadline::never), "an empty message is not received into nothing");
    expect(no_piece.wait(deadline::never) && empty_piece.wait(deadline::never) && into.wait(deadline::never),
           "an empty send that was received is not done");
}

template <class Net>
void carries_pieces(Net& net) {
    const channel on{.context = law_context, .tag = 12};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const buffer whole = pattern(5003, 4);
    const byte_view bytes(whole);
    byte_pieces pieces;
    pieces.push(bytes.first(3));
    pieces.push({});
    pieces.push(bytes.subspan(3, 1000));
    pieces.push(bytes.subspan(1003));
    auto first = net.post(next, on, pieces);
    auto second = net.post(next, on, pieces);
    {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && same_bytes(message->pieces(), whole), "the pieces of a message change or swap");
    }
    buffer parts(5003);
    const byte_span into(parts);
    const byte_span targets[] = {into.first(1), into.subspan(1, 2500), {}, into.subspan(2501)};
    expect(net.receive_into(previous, on, targets, deadline::never), "a receive without deadline comes back empty");
    expect(parts == whole, "receive_into writes the pieces of a message to other places");
    expect(first.wait(deadline::never) && second.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void refuses_wrong_sizes(Net& net) {
    const channel on{.context = law_context, .tag = 13};
    for (const std::size_t wrong : {std::size_t{3}, std::size_t{5}, std::size_t{0}}) {
        post_number(net, net.rank(), on, 1);
        post_number(net, net.rank(), on, 2);
        buffer into(wrong);
        const byte_span target(into);
        bool refused = false;
        try {
            net.receive_into(net.rank(), on, {&target, 1}, deadline::never);
        } catch (const protocol_error&) {
            refused = true;
        }
        expect(refused, "receive_into takes a message of another size");
        expect_equal(receive_number(net, net.rank(), on), 2U, "after a refused message, the next one");
    }
}

template <class Net>
void sends_until_released(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 14};
    const channel signal{.context = law_context, .tag = 15};
    if (net.rank() == 0) {
        buffer lent = pattern(size, 1);
        auto sent = net.post(1, on, byte_view(lent));
        expect(!sent.done(), "a send is done before it is received");
        expect(!sent.wait(deadline::immediate), "a send is done before it is received");
        post_number(net, 1, signal, 0);
        expect(sent.wait(deadline::never) && sent.done(), "a received send is not done");
        lent = pattern(size, 2);
        sent = net.post(1, on, byte_view(lent));
        expect(sent.wait(deadline::never), "a received send is not done");
    } else if (net.rank() == 1) {
        receive_number(net, 0, signal);
        {
            const auto message = net.receive(0, on, deadline::never);
            expect(message && is_pattern(message->pieces(), size, 1), "lent bytes change while they are read");
        }
        const auto message = net.receive(0, on, deadline::never);
        expect(message && is_pattern(message->pieces(), size, 2), "reused bytes arrive in their old state");
    }
}

template <class Net>
void withdraws(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 16};
    const buffer lent = pattern(size, 1);
    const auto dropped = [&](auto end) {
        const rank_t next = (net.rank() + 1) % net.size();
        const rank_t previous = (net.rank() + net.size() - 1) % net.size();
        auto sent = net.post(next, on, byte_view(lent));
        end(sent);
        post_number(net, next, on, 2);
        meet(net, 0);  // nobody receives before it is withdrawn
        expect_equal(receive_number(net, previous, on), 2U, "a withdrawn message");
        expect(!net.receive(previous, on, deadline::immediate), "a withdrawn message comes late");
        meet(net, 1);
    };
    dropped([](auto& sent) { [[maybe_unused]] const auto ended = std::move(sent); });
    dropped([](auto& sent) { sent.settle(); });
    dropped([](auto& sent) { sent = {}; });
    auto none = sending_of<Net>();
    none.settle();
    expect(none.done() && none.wait(deadline::immediate), "a default-constructed sending is not done");
}

/// A send ends while its message is being read. The reader keeps valid bytes, because settle() waits for it.
template <class Net>
void settles_after_reading(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 17};
    const channel signal{.context = law_context, .tag = 18};
    if (net.rank() == 0) {
        {
            const buffer lent = pattern(size, 1);
            auto sent = net.post(1, on, byte_view(lent));
            receive_number(net, 1, signal);
            sent.settle();
            expect(sent.done(), "a settled send is not done");
        }
        post_number(net, 1, signal, 0);
    } else if (net.rank() == 1) {
        {
            const auto message = net.receive(0, on, deadline::never);
            post_number(net, 0, signal, 0);
            net.sleep_until(net.now() + microseconds(100));
            expect(message && is_pattern(message->pieces(), size, 1), "settle() does not wait for the reader");
        }
        receive_number(net, 0, signal);
    }
}

}  // namespace detail

/// Checks the laws of messages: order, content, sizes, sources, and counts.
template <class Laws>
void message_laws(const Laws& all) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
        all.law("messages of one channel keep their order", ranks, [](auto& net) { detail::keeps_order(net); });
        all.law("post, then receive, with all", ranks, [](auto& net) { detail::exchange_with_all(net, 1000); });
    }
    all.law("lent and handed-over messages share one order", 3,
            [](auto& net) { detail::keeps_order_of_both_kinds(net); });
    all.law("channels never meet", 3, [](auto& net) { detail::separates_channels(net); });
    all.law("any-of-set takes from all and names the source", 5, [](auto& net) { detail::takes_from_any(net); });
    all.law("any-of-set leaves others alone", 5, [](auto& net) { detail::leaves_others_alone(net); });
    all.law("receive_latest takes the newest and drops the others", 3, [](auto& net) { detail::takes_latest(net); });
    all.law("a rank posts to itself", 2, [](auto& net) { detail::takes_itself(net); });
    all.law("messages may be empty", 2, [](auto& net) { detail::carries_nothing(net); });
    all.law("pieces arrive in order", 2, [](auto& net) { detail::carries_pieces(net); });
    all.law("receive_into refuses other sizes", 1, [](auto& net) { detail::refuses_wrong_sizes(net); });
    const std::size_t lent = detail::lent_size(all.limits());
    if (all.limits().lends || all.limits().copied_bytes > 0)
        all.law("a send is done after it was received", 2,
                [lent](auto& net) { detail::sends_until_released(net, lent); });
    for (const int ranks : {1, 2})
        all.law("a withdrawn message is never seen", ranks, [lent](auto& net) { detail::withdraws(net, lent); });
    all.law("settle waits for the reader", 2, [lent](auto& net) { detail::settles_after_reading(net, lent); });
    all.law("post, then receive, large messages with all", 3,
            [size = all.limits().large_bytes](auto& net) { detail::exchange_with_all(net, size); });
    all.law("the largest message crosses a small one", 2, [size = all.limits().largest_bytes](auto& net) {
        net.rank() == 0 ? detail::crosses(net, size, 1) : detail::crosses(net, 1, size);
    });
    all.law("post, then receive, large messages around a ring", 3,
            [size = all.limits().large_bytes](auto& net) { detail::pass_around_ring(net, size); });
    all.law("post, then receive, around the largest ring", all.limits().most_ranks, [](auto& net) {
        for (int round = 0; round < 20; ++round) detail::pass_around_ring(net, 100);
    });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_expect.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

/// A message of a head and a body, or memory into which one may be received.
struct framed_message {
    explicit framed_message(std::size_t size, std::uint64_t seed)
        : head(pattern(40, seed)), body(pattern(size, seed)) {}

    byte_pieces pieces() const {
        byte_pieces both{byte_view(head)};
        both.push(body);
        return both;
    }

    buffer head;
    buffer body;
};

template <class Net>
void expect_into(Net& net, channel on, framed_message& place) {
    const byte_span targets[] = {place.head, place.body};
    net.expect(0, on, targets);
}

template <class Message>
void expect_same(const Message& received, const framed_message& sent) {
    buffer joined = sent.head;
    joined.append(sent.body.begin(), sent.body.end());
    expect(received && same_bytes(received->pieces(), joined), "an expected message arrives with other bytes");
}

/// Rank 0 sends three messages to rank 1, which expects them before or after they are sent: the first into memory of
/// its size, the second without memory, the third into memory of another size.
template <class Net>
void receives_what_it_expects(Net& net, std::size_t size, bool beforehand) {
    const channel on{.context = law_context, .tag = 60};
    const framed_message messages[] = {framed_message(size, 1), framed_message(size, 2), framed_message(size, 3)};
    if (net.rank() == 0) {
        if (beforehand) meet(net, 1);
        sending_of<Net> sends[3];
        for (std::size_t i = 0; i < 3; ++i) sends[i] = net.post(1, on, messages[i].pieces());
        if (!beforehand) meet(net, 1);
        for (auto& each : sends) expect(each.wait(deadline::never), "a send that was received is not done");
    } else {
        if (!beforehand) meet(net, 1);
        framed_message place(size, 0), other_place(size + 1, 0);
        expect_into(net, on, place);
        net.expect(0, on, {});
        expect_into(net, on, other_place);
        if (beforehand) meet(net, 1);
        for (const framed_message& sent : messages) expect_same(net.receive(0, on, deadline::never), sent);
        expect(is_pattern(byte_pieces(byte_view(other_place.body)), size + 1, 0),
               "a message is put in a place of another size");
    }
}

/// After `forget` the memory belongs to the receiver again, whether the message is on its way or never comes.
template <class Net>
void forgets_what_it_expected(Net& net, std::size_t size, bool is_sent) {
    const channel on{.context = law_context, .tag = 61}, other{.context = law_context, .tag = 62};
    const framed_message message(size, 1), own(size, 5);
    sending_of<Net> sent;
    if (net.rank() == 0) {
        if (is_sent) sent = net.post(1, on, message.pieces());
        post_number(net, 1, other, 6);
        receive_number(net, 1, other);
        sent.settle();
        post_number(net, 1, other, 8);
    } else {
        framed_message place(size, 0);
        receive_number(net, 0, other);  // the message sent before has been noticed by now
        expect_into(net, on, place);
        net.forget(on);
        std::copy(own.body.begin(), own.body.end(), place.body.begin());
        post_number(net, 0, other, 7);
        receive_number(net, 0, other);
        expect(place.body == own.body, "a place that was forgotten is written to");
    }
}

}  // namespace detail

/// Checks the laws of messages that are expected before a receive waits for them.
template <class Laws>
void expectation_laws(const Laws& all) {
    const std::size_t sizes[] = {100, detail::lent_size(all.limits()), 4'000'000};
    const auto where_known = [](auto check) {
        return [check](auto& net) {
            if constexpr (ExpectingTransport<std::remove_reference_t<decltype(net)>>) check(net);
        };
    };
    for (const std::size_t size : sizes)
        for (const bool first : {false, true}) {
            all.law("what is expected is received, whole and in order", 2,
                    where_known([=](auto& net) { detail::receives_what_it_expects(net, size, first); }));
            all.law("what is forgotten leaves its place alone", 2,
                    where_known([=](auto& net) { detail::forgets_what_it_expected(net, size, first); }));
        }
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_monitor.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline constexpr std::uint64_t open_context = law_context + 40;  // in which rank 0 monitors
inline constexpr channel monitored{.context = open_context, .tag = 0};

/// The next that `net` is told of `peer`.
template <class Net>
void expect_told(Net& net, rank_t peer, channel on, const peer_event& event, const char* what) {
    const auto told = net.receive(peer, on, deadline::never);
    expect(told.has_value() && told->source() == peer, "a monitored channel tells of another peer");
    expect(read_peer_event(*told) == event, what);
}

/// Whether a receive throws `peer_failure` that names the first of `peers`.
template <class Net>
void expect_in_vain(Net& net, std::span<const rank_t> peers, channel on, deadline until) {
    try {
        net.receive(peers, on, until);
    } catch (const peer_failure& thrown) {
        expect(thrown.culprit() == peers[0] && thrown.notice().context == on.context, "it names another rank");
        return;
    }
    expect(false, "a receive waits for peers that have all ended");
}

template <class Net>
std::vector<rank_t> others(const Net& net) {
    std::vector<rank_t> all;
    for (rank_t peer = 0; peer < net.size(); ++peer)
        if (peer != net.rank()) all.push_back(peer);
    return all;
}

/// The others post and end; rank 0 hears of each end after all else. It begins to monitor before that, or after it.
template <class Net>
void tells_of_ends(Net& net, bool beforehand) {
    const channel first{law_context, 1}, second{open_context, 2}, ready{law_context + 1, 3};
    if (net.rank() > 0) {
        if (beforehand) receive_number(net, 0, ready);
        for (std::uint32_t i = 0; i < 20; ++i) post_number(net, 0, i % 2 == 0 ? first : second, i);
        return;
    }
    if (beforehand) net.monitor(monitored);
    for (const rank_t peer : others(net))
        if (beforehand) post_number(net, peer, ready, 0);
    if (!beforehand) {
        for (const rank_t peer : others(net))
            expect(net.inquire(peer, law_context, 1, deadline::never)->kind == operation::departure, "it has ended");
        net.monitor(monitored);
    }
    for (const rank_t peer : others(net)) {
        const std::uint64_t life = net.incarnation(peer);
        expect(life != 0, "a rank that has lived has incarnation 0");
        expect_told(net, peer, monitored, {peer_change::ended, life}, "a rank has ended, and something else is told");
        for (std::uint32_t i = 0; i < 20; ++i) {
            const auto came = net.receive(peer, i % 2 == 0 ? first : second, deadline::immediate);
            expect(came.has_value(), "an end overtakes a message");
            expect_equal(number_in(*came), i, "messages before an end");
        }
    }
    expect_in_vain(net, others(net), second, deadline::never);
    expect_in_vain(net, others(net), second, deadline::immediate);
    expect(!net.receive(1, monitored, net.now() + milliseconds(1)), "an end is told twice");
    expect(!net.receive(1, first, net.now() + milliseconds(1)), "a message comes twice");  // there nobody monitors
}

/// A receive that has begun to wait ends when the last of its peers ends.
template <class Net>
void ends_receives_in_vain(Net& net) {
    if (net.rank() > 0) return;
    const channel waiting{open_context, 7};
    net.monitor(monitored);
    expect_in_vain(net, others(net), waiting, deadline::never);
    net.close(open_context);
    expect(!net.receive(1, waiting, deadline::immediate), "a context is monitored after it has been closed");
}

/// Rank 1 has sent and goes on to send: nothing of it arrives, nor does its end. Rank 2 is not touched.
template <class Net>
void fences(Net& net) {
    const channel numbers{law_context, 1}, gate{law_context + 1, 2};
    if (net.rank() > 0) {
        post_number(net, 0, numbers, 5);
        post_number(net, 0, gate, 0);
        receive_number(net, 0, gate);
        for (std::uint32_t i = 0; i < 5; ++i) post_number(net, 0, numbers, i);
        return;
    }
    net.monitor(monitored);
    for (const rank_t peer : others(net)) receive_number(net, peer, gate);
    net.fence(1, net.incarnation(1));
    net.fence(1, net.incarnation(1));
    for (const rank_t peer : others(net)) post_number(net, peer, gate, 0);
    expect_told(net, 2, monitored, {peer_change::ended, net.incarnation(2)}, "a fence holds back another rank");
    expect_equal(receive_number(net, 2, numbers), 5U, "a fence holds back another rank");
    for (std::uint32_t i = 0; i < 5; ++i) expect_equal(receive_number(net, 2, numbers), i, "a message of rank 2");
    expect(!net.receive(1, numbers, net.now() + milliseconds(2)), "a message passes a fence");
    const rank_t one = 1;
    expect_in_vain(net, {&one, 1}, channel{open_context, 8}, deadline::never);
}

/// Rank 3 throws. Ranks 0 and 1 monitor, and go on together; rank 2 does not, and ends.
template <class Net>
void goes_on_without(Net& net, const char* reason, run_witness& seen) {
    constexpr rank_t thrower = 3, ends = 2;
    const channel gate{law_context, 1}, numbers{law_context + 1, 2}, beside{open_context, 3};
    if (net.rank() == thrower) {
        for (const rank_t peer : {0, 1}) receive_number(net, peer, gate);
        for (const rank_t peer : {0, 1}) post_number(net, peer, numbers, 5);
        throw std::out_of_range(reason);
    }
    const auto is_blamed = [&](const channel on) {
        try {
            net.receive(net.rank() == ends ? ends : thrower, on, deadline::never);
        } catch (const peer_failure& heard) {
            if (!tells_of(heard, thrower, on == beside ? "" : reason)) return false;
            if (net.rank() == ends) seen.is_informed(ends);
            if (net.rank() == ends) throw;
            return heard.notice().context == on.context;
        }
        return false;
    };
    if (net.rank() == ends) return expect(is_blamed(gate), "an exception does not end a rank that does not monitor");
    net.monitor(monitored);
    post_number(net, thrower, gate, 0);
    expect_told(net, thrower, monitored, {peer_change::ended, net.incarnation(thrower)},
                "a rank has thrown, and something else is told");
    expect_equal(receive_number(net, thrower, numbers), 5U, "the last message of a rank that throws");
    expect(is_blamed(numbers), "a receive from a rank that has thrown waits, or does not say why it ends");
    expect(is_blamed(beside), "a receive from a rank that has thrown waits, in a context that is monitored");
    const auto left = net.inquire(thrower, law_context + 2, 1, deadline::never);
    expect(left && left->kind == operation::departure, "a rank that has thrown does not count as one that has left");
    expect(!net.aborted(every_context), "an exception ends a rank that monitors");
    for (const std::uint64_t context : {law_context, open_context + 1}) {
        const channel on{context, 4};
        post_number(net, 1 - net.rank(), on, 7);
        expect_equal(receive_number(net, 1 - net.rank(), on), 7U, "a message between ranks that go on");
    }
    const channel received{law_context, 5};
    net.rank() == 0 ? post_number(net, 1, received, 1) : static_cast<void>(receive_number(net, 0, received));
    const abort_notice own = law_notice(open_context + 1, 1);
    if (net.rank() == 1) expect(net.abort(own) == own, "an abort counts for nothing after an exception");
    expect_ended(own, "an abort ends nothing after an exception", [&] {
        net.receive(net.rank(), {open_context + 1, 4}, deadline::never);
    });
    seen.is_informed(net.rank());
}
template <class Runner>
void ends_for_who_monitors(Runner& runner, bool one_process) {
    constexpr int ranks = 4;
    const char* const reason = "index 8 is out of range";
    const auto monitored_runs = [&](int count, auto body) {
        runner(count, [&](auto& net) {
            if constexpr (MonitoredTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    run_witness seen(ranks);
    expect_rethrown(monitored_runs, ranks, 3, reason, seen, [&](auto& net) { goes_on_without(net, reason, seen); });
    if (seen.has_any()) seen.expect_all_informed(3, one_process);
}

/// All know a rank by the same number.
template <class Net>
void has_one_incarnation(Net& net) {
    const channel on{law_context, 1};
    const auto low = [](std::uint64_t life) { return static_cast<std::uint32_t>(life); };
    for (rank_t of = 0; of < net.size(); ++of)
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, on, low(net.incarnation(of)));
    for (rank_t of = 0; of < net.size(); ++of)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect_equal(receive_number(net, peer, on), low(net.incarnation(of)), "incarnation on another rank");
    meet(net, 1);
}

}  // namespace detail

/// Laws of `MonitoredTransport`.
template <class Laws>
void monitor_laws(const Laws& all) {
    const auto law = [&](const char* name, int ranks, auto body) {
        all.law(name, ranks, [body](auto& net) {
            if constexpr (MonitoredTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    for (const bool beforehand : {true, false})
        law("an end comes after all else", 4, [beforehand](auto& net) { detail::tells_of_ends(net, beforehand); });
    law("a receive ends with the last of its peers", 3, [](auto& net) { detail::ends_receives_in_vain(net); });
    law("nothing passes a fence", 3, [](auto& net) { detail::fences(net); });
    all.law_of_run(
        "an exception is an end for who monitors", 4,
        [one_process = all.limits().one_process](auto& runner) { detail::ends_for_who_monitors(runner, one_process); });
    law("an incarnation is the same for all", 3, [](auto& net) { detail::has_one_incarnation(net); });
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/detail/transport_laws_shared_memory.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline call_signature shared_call(std::uint64_t number) {
    return {.number = number, .kind = operation::all_reduce, .dimension = 8};
}

/// Bytes that one rank exposes.
struct exposed_bytes {
    std::vector<std::byte> input, output;

    exposed_bytes(std::size_t size, rank_t rank) : input(size, std::byte(rank + 1)), output(size) {}
    exposure in(const call_signature& call) { return {call, {}, input.data(), output.data()}; }
};

template <class Commons, class Visit>
void see_all(Commons& shared, int size, std::uint64_t number, Visit&& visit) {
    for (rank_t peer = 0; peer < size; ++peer) {
        const exposure* seen = shared.exposed(peer, shared_call(number), deadline::never);
        expect(seen != nullptr, "a wait without deadline for what a rank exposes comes back empty");
        expect(seen->call == shared_call(number), "what a rank exposes names another call");
        visit(peer, *seen);
    }
}

/// Every rank reads its own byte of all inputs and writes it to all outputs, in more operations than there are slots.
template <class Net>
void reaches_all_memory(Net& net) {
    auto shared = net.share(law_context);
    const auto ranks = static_cast<std::size_t>(net.size()), self = static_cast<std::size_t>(net.rank());
    for (std::uint64_t number = 1; number <= 2 * Net::window::places + 1; ++number) {
        exposed_bytes own(ranks, net.rank());
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect(shared.has_room(peer, number, deadline::never), "a wait without deadline for room gives up");
        shared.expose(own.in(shared_call(number)));
        unsigned sum = 0;
        see_all(shared, net.size(), number,
                [&](rank_t, const exposure& seen) { sum += std::to_integer<unsigned>(seen.input[self]); });
        expect(shared.enter(number), "a rank cannot enter although none has withdrawn");
        see_all(shared, net.size(), number,
                [&](rank_t, const exposure& seen) { seen.output[self] = static_cast<std::byte>(sum); });
        shared.leave(number);
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect(shared.has_left(peer, number, deadline::never), "a wait without deadline for a rank gives up");
        for (const std::byte each : own.output)
            expect_equal(std::to_integer<std::size_t>(each), ranks * (ranks + 1) / 2, "others wrote something else");
    }
}

/// Copies in slots stay until all ranks have read them, even if their own rank goes on and ends.
template <class Net>
void keeps_slots(Net& net) {
    auto shared = net.share(law_context + 1);
    const auto read = [&](std::uint64_t number) {
        see_all(shared, net.size(), number, [&](rank_t peer, const exposure& seen) {
            std::uint64_t value = 0;
            std::memcpy(&value, seen.input, sizeof value);
            expect_equal(value, number * 100 + static_cast<std::uint64_t>(peer), "a slot holds something else");
        });
        shared.pass(number);
    };
    for (std::uint64_t number = 1; number <= 3 * Net::window::places; ++number) {
        const std::uint64_t value = number * 100 + static_cast<std::uint64_t>(net.rank());
        for (rank_t peer = 0; peer < net.size(); ++peer) shared.has_room(peer, number, deadline::never);
        const byte_span slot = shared.slot(number, sizeof value);
        expect(slot.size() == sizeof value, "a slot has another size");
        std::memcpy(slot.data(), &value, sizeof value);
        shared.expose({shared_call(number), {}, slot.data(), nullptr});
        shared.prepare(number + 1 + number % 3 / 2);  // mostly the next number, sometimes a later one
        read(number);
    }
}

/// Exposing announces the call. The announcement of another call ends the wait for exposed memory.
template <class Net>
void announces_what_is_exposed(Net& net) {
    constexpr std::uint64_t context = law_context + 2;
    auto shared = net.share(context);
    exposed_bytes own(1, net.rank());
    if (net.rank() == 0) {
        shared.expose(own.in(shared_call(1)));
        expect(shared.exposed(1, shared_call(1), deadline::never) == nullptr,
               "a wait for what is exposed ignores that the rank calls something else");
        expect(net.inquire(1, context, 1, deadline::never) == numbered_call(1, 1), "inquire tells another call");
        expect(shared.exposed(1, shared_call(2), deadline::immediate) == nullptr, "something is exposed too early");
    } else {
        expect(net.inquire(0, context, 1, deadline::never) == shared_call(1),
               "a call that was exposed counts as not announced");
        net.announce(context, numbered_call(1, 1));
    }
    meet(net, 1);
}

/// No rank enters after a rank has withdrawn its memory; withdrawing waits for the ranks that have entered.
template <class Net>
void withdraws(Net& net) {
    constexpr std::uint64_t context = law_context + 3;
    auto shared = net.share(context);
    const channel on{.context = law_context + 4, .tag = 1};
    exposed_bytes own(1, net.rank());
    for (std::uint64_t number = 1; number <= 2; ++number) {
        shared.expose(own.in(shared_call(number)));
        see_all(shared, net.size(), number, [](rank_t, const exposure&) {});
        const bool enters_first = number == 1;
        if (net.rank() == 0) {
            if (enters_first) receive_number(net, 1, on);
            shared.withdraw(number);
            own.output[0] = std::byte{9};  // no other rank writes it now
            if (!enters_first) post_number(net, 1, on, 0);
        } else {
            if (!enters_first) receive_number(net, 0, on);
            expect(shared.enter(number) == enters_first, enters_first ? "a rank cannot enter" : "a rank enters");
            if (enters_first) {
                post_number(net, 0, on, 0);
                shared.exposed(0, shared_call(number), deadline::never)->output[0] = std::byte{1};
                shared.abandon(number);
            }
        }
        meet(net, static_cast<std::uint32_t>(number));
        if (net.rank() == 0) expect(own.output[0] == std::byte{9}, "a rank is inside after a withdrawal");
    }
}

template <class Net>
void hands_out_work_once(Net& net) {
    auto shared = net.share(law_context + 5);
    exposed_bytes own(100, net.rank());
    shared.expose(own.in(shared_call(1)));
    see_all(shared, net.size(), 1, [](rank_t, const exposure&) {});
    expect(shared.enter(1), "a rank cannot enter although none has withdrawn");
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        const exposure* theirs = shared.exposed(peer, shared_call(1), deadline::never);
        for (std::uint64_t i = shared.claim(peer, 1); i < 100; i = shared.claim(peer, 1))
            theirs->output[i] = std::byte(std::to_integer<int>(theirs->output[i]) + 1);
    }
    shared.leave(1);
    for (rank_t peer = 0; peer < net.size(); ++peer) shared.has_left(peer, 1, deadline::never);
    for (const std::byte each : own.output) expect(each == std::byte{1}, "a claim is given never, or twice");
}

template <class Net>
void counts_accesses(Net& net) {
    auto shared = net.share(law_context + 6);
    const traffic before = net.counted();
    shared.count(3, 100);
    expect(net.counted() - before == traffic{3, 100, 3, 100}, "accesses are counted otherwise");
}

template <class Net>
void ends_waits_for_memory(Net& net) {
    constexpr std::uint64_t context = law_context + 7;
    auto shared = net.share(context);
    ends_waits(net, context, "exposed() survives an abort",
               [&] { shared.exposed(net.rank(), shared_call(1), deadline::never); });
}

}  // namespace detail

/// Checks the laws of memory that ranks expose to each other.
template <class Laws>
void shared_memory_laws(const Laws& all) {
    const auto where_shared = [](auto check) {
        return [check](auto& net) {
            if constexpr (SharedMemoryTransport<std::remove_reference_t<decltype(net)>>) check(net);
        };
    };
    for (const int ranks : {1, 2, 5})
        all.law("exposed memory is read and written by all", ranks,
                where_shared([](auto& net) { detail::reaches_all_memory(net); }));
    for (const int ranks : {1, 2, 5})
        all.law("a slot stays until all have passed", ranks, where_shared([](auto& net) { detail::keeps_slots(net); }));
    all.law("to expose is to announce", 2, where_shared([](auto& net) { detail::announces_what_is_exposed(net); }));
    all.law("nobody is inside after a withdrawal", 2, where_shared([](auto& net) { detail::withdraws(net); }));
    all.law("work is handed out once", 3, where_shared([](auto& net) { detail::hands_out_work_once(net); }));
    all.law("accesses are counted", 1, where_shared([](auto& net) { detail::counts_accesses(net); }));
    all.law("a wait for exposed memory ends with its context", 3,
            where_shared([](auto& net) { detail::ends_waits_for_memory(net); }));
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/transport_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Checks a model of `Transport` against the laws of the concept, and against those of `ConcurrentTransport`,
/// `ExpectingTransport`, `ChunkingTransport`, `ComputingTransport`, `MonitoredTransport` and `SharedMemoryTransport` if
/// it models these.
///
/// `runner(ranks, body)` calls `body(net)` on every rank of a fresh group of `ranks` and rethrows what a body throws.
/// `visit(const char* name, const law_outcome&)` is called once per law. No law depends on measured time or on sleeps
/// that let others go first, so that the laws hold in virtual time too. Example:
///
///     for_each_law([](int ranks, auto body) { in_process::run(ranks, body, {.mailbox_bytes = 4096}); },
///                  transport_limits{.mailbox_bytes = 4096},
///                  [](const char* name, const law_outcome& outcome) { INFO(name); CHECK_MESSAGE(outcome.held,
///                  outcome.what); });
template <class Runner, class Visit>
void for_each_law(Runner&& runner, const transport_limits& limits, Visit&& visit) {
    const law_list all(runner, limits, visit);
    message_laws(all);
    expectation_laws(all);
    computing_laws(all);
    deadline_laws(all);
    control_laws(all);
    abort_laws(all);
    activity_laws(all);
    monitor_laws(all);
    shared_memory_laws(all);
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing/value_coding_laws.hpp

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr std::size_t law_value_counts[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000};

/// The laws. Each function throws if its law does not hold.
template <std::floating_point T, ValueCoding V>
class value_coding_laws {
  public:
    explicit value_coding_laws(const V& coding) : coding_(coding) {}

    void takes_a_bit_or_more() const {
        for (std::size_t count = 0; count <= 1000; ++count)
            expect(count <= 8 * coding_.size(count, sizeof(T)), "size gives less than one bit for each value");
    }

    void writes_its_size() const {
        for (const std::size_t count : law_value_counts) {
            const std::vector<T> values = some_values(count);
            const buffer zeros = encoded_over(values, random_key{1}, std::byte{0});
            const buffer ones = encoded_over(values, random_key{1}, std::byte{255});
            const std::size_t size = coding_.size(count, sizeof(T));
            expect(std::equal(zeros.begin(), zeros.begin() + static_cast<std::ptrdiff_t>(size), ones.begin()),
                   "encode leaves bytes as they were, or writes others for the same values and key");
            for (std::size_t i = size; i < zeros.size(); ++i)
                expect(zeros[i] == std::byte{0} && ones[i] == std::byte{255},
                       "encode writes more bytes than size says");
        }
    }

    void decodes_all_values() const {
        for (const std::size_t count : law_value_counts) {
            const buffer bytes = encoded(some_values(count), random_key{2});
            expect(same(decoded(bytes, count, T{1}), decoded(bytes, count, T{2})),
                   "decode leaves values as they were, or reads others from the same bytes");
        }
    }

    void keeps_its_promise_of_values() const {
        if constexpr (V::is_lossless) {
            using limits = std::numeric_limits<T>;
            const std::vector<T> special{limits::quiet_NaN(),  limits::infinity(), -limits::infinity(), T{0}, -T{0},
                                         limits::denorm_min(), limits::max(),      limits::lowest()};
            expect(
                same(decoded(encoded(special, random_key{}), special.size()), special),
                "is_lossless is true, but a NaN, an infinity, a zero, a small or a large value comes back as another");
            for (const std::size_t count : law_value_counts)
                expect(same(decoded(encoded(some_values(count), random_key{}), count), some_values(count)),
                       "is_lossless is true, but a value comes back as another");
        } else {
            for (const std::size_t count : law_value_counts)
                for (const T value : decoded(encoded(some_values(count), random_key{}), count))
                    expect(std::isfinite(value), "a finite value comes back as one that is not");
        }
    }

    void keeps_its_promise_of_expectation() const {
        if constexpr (V::is_unbiased) {
            const std::vector<T> values = some_values(64);
            constexpr int trials = 4000;
            std::vector<double> sum(values.size()), squares(values.size());
            for (int trial = 0; trial < trials; ++trial) {
                const std::vector<T> read = decoded(encoded(values, random_key{3}.derive(trial)), values.size());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const double error = static_cast<double>(read[i]) - static_cast<double>(values[i]);
                    sum[i] += error;
                    squares[i] += error * error;
                }
            }
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double rounding = 1e-6 * trials * std::abs(static_cast<double>(values[i]));
                expect(std::abs(sum[i]) <= 6 * std::sqrt(squares[i]) + rounding,
                       "is_unbiased is true, but the mean of decoded values is not the one that was coded");
            }
        }
    }

    void keeps_its_promise_of_contraction() const {
        if constexpr (requires { requires V::is_contractive; })
            for (const std::size_t count : law_value_counts) {
                const std::vector<T> values = some_values(count);
                const std::vector<T> read = decoded(encoded(values, random_key{4}), count);
                double norm = 0, error = 0;
                for (std::size_t i = 0; i < count; ++i) {
                    norm += std::pow(static_cast<double>(values[i]), 2);
                    error += std::pow(static_cast<double>(values[i]) - static_cast<double>(read[i]), 2);
                }
                expect(count == 0 || error < norm, "is_contractive is true, but the error is as large as the values");
            }
    }

    void survives_other_bytes() const {
        random_sequence random(random_key{5});
        for (int trial = 0; trial < 2000; ++trial) {
            const std::size_t count = law_value_counts[random.below(std::size(law_value_counts))];
            buffer bytes(coding_.size(count, sizeof(T)));
            const bool is_all_ones = trial % 8 == 0;
            for (std::byte& each : bytes) each = static_cast<std::byte>(is_all_ones ? 255 : random.below(256));
            try {
                const std::vector<T> read = decoded(bytes, count);
                for (const T value : read)
                    expect(V::is_lossless || std::isfinite(value), "other bytes decode to a value that is not finite");
            } catch (const protocol_error&) {
            }
        }
    }

    void tells_its_options() const {
        expect(fingerprint(coding_) == fingerprint(V(coding_)), "a copy has another fingerprint");
        if (!(coding_ == V())) expect(fingerprint(coding_) != fingerprint(V()), "visit_options leaves an option out");
    }

  private:
    static std::vector<T> some_values(std::size_t count) {
        const counter_rng random(random_key{6});
        std::vector<T> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(random.uniform(i) * 8 - 4);
        return values;
    }
    /// With 16 bytes behind those that `encode` gets.
    buffer encoded_over(const std::vector<T>& values, random_key key, std::byte before) const {
        const std::size_t size = coding_.size(values.size(), sizeof(T));
        buffer bytes(size + 16);
        std::fill(bytes.begin(), bytes.end(), before);
        coding_.encode(std::span<const T>(values), key, 0, byte_span(bytes).first(size));
        return bytes;
    }
    buffer encoded(const std::vector<T>& values, random_key key) const {
        return encoded_over(values, key, std::byte{0});
    }
    std::vector<T> decoded(const buffer& bytes, std::size_t count, T before = T{}) const {
        std::vector<T> values(count, before);
        coding_.decode(byte_view(bytes).first(coding_.size(count, sizeof(T))), std::span<T>(values));
        return values;
    }
    static bool same(const std::vector<T>& a, const std::vector<T>& b) {
        return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
    }

    const V& coding_;
};

}  // namespace detail

/// Checks a `ValueCoding` against the laws of the concept, on elements of type T.
///
/// Give a coding with other options than the default ones, so that the law about options sees them. `visit(const char*
/// name, const law_outcome&)` is called once per law.
template <std::floating_point T, ValueCoding V, class Visit>
void for_each_value_coding_law(const V& coding, Visit&& visit) {
    const detail::value_coding_laws<T, V> laws(coding);
    const auto law = [&](const char* name, auto check) {
        law_outcome outcome;
        try {
            (laws.*check)();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = std::string(V::name) + ": " + failed.what()};
        }
        visit(name, static_cast<const law_outcome&>(outcome));
    };
    using all = detail::value_coding_laws<T, V>;
    law("a value takes a bit or more", &all::takes_a_bit_or_more);
    law("encode writes its size, and the same bytes again", &all::writes_its_size);
    law("decode reads all values, and the same again", &all::decodes_all_values);
    law("values come back exact where promised, and finite", &all::keeps_its_promise_of_values);
    law("rounding is unbiased where promised", &all::keeps_its_promise_of_expectation);
    law("rounding is contractive where promised", &all::keeps_its_promise_of_contraction);
    law("other bytes give finite values or protocol_error", &all::survives_other_bytes);
    law("options are told", &all::tells_its_options);
}

}}}  // namespace rill::RILL_ABI::testing

// ===== rill/testing.hpp

/// All law suites and protocol tests, for policies and protocols of your own.

#endif  // RILL_SINGLE_TESTING_HPP
