#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
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

namespace rill::inline RILL_ABI::testing {

namespace detail {

/// Small whole numbers, none of them zero: sums and differences are exact.
template <Element T>
std::vector<T> law_input(std::size_t dimension, std::uint64_t seed) {
    std::vector<T> input(dimension);
    random_sequence random(random_key{seed});
    for (T& x : input) x = static_cast<T>(1 + random.below(1000)) * (random.below(2) == 0 ? T{1} : T{-1});
    return input;
}

/// What a worker contributes, as a dense vector over the coded dimension; checks that the view is one.
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

/// What the others see of it: the result of an operation to which nobody else contributes.
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

/// One whole operation: the result, and the commit.
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

/// Operations in which this rank contributes nothing, or after which the contribution returns.
template <Element T, Compressor<T> Codec>
void law_nothing_contributed(Codec& codec, std::uint64_t number) {
    codec.begin(number);
    law_result<T>(codec, std::vector<T>(codec.coded_dimension()));
    codec.commit();
    codec.begin(number + 1);
    codec.rollback();
}

}  // namespace detail

/// Checks a compressor against the laws of the concept. `bind()` gives a fresh codec, bound alike each time.
///
/// Checked is what `encode`, `decode`, `commit` and `rollback` do; codings are frames' (`stream_codings`). Where the
/// codec has a `residual()`, as error feedback has, nothing may be lost. `visit(const char* name, const law_outcome&)`
/// is called once per law.
template <Element T, class Bind, class Visit>
    requires Compressor<std::invoke_result_t<Bind&>, T>
void for_each_compressor_law(Bind&& bind, Visit&& visit) {
    using codec_type = std::invoke_result_t<Bind&>;
    const auto law = [&](const char* name, auto check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, std::as_const(outcome));
    };
    const std::size_t dimension = bind().dimension();
    const auto input = [&](std::uint64_t seed) { return detail::law_input<T>(dimension, seed); };

    law("codecs bound alike do the same", [&] {
        auto a = bind(), b = bind();
        for (std::uint64_t number = 1; number <= 4; ++number)
            expect(detail::law_operation<T>(a, number, input(number)) ==
                       detail::law_operation<T>(b, number, input(number)),
                   "two codecs that were bound alike give other results");
    });
    law("a codec is not disturbed where nothing is contributed", [&] {
        auto codec = bind();
        detail::law_nothing_contributed<T>(codec, 1);
        detail::law_operation<T>(codec, 3, input(1));
    });
    law("a lossless codec loses nothing", [&] {
        auto codec = bind();
        if (codec_type::is_lossless)
            expect(detail::law_operation<T>(codec, 1, input(1)) == input(1), "the result is not the input");
    });
    law("a contractive codec leaves out less than all", [&] {
        auto codec = bind();
        const std::vector<T> nothing(dimension), sent = detail::law_operation<T>(codec, 1, input(1));
        if (codec_type::is_contractive)
            expect(detail::law_norm(input(1), sent) <= detail::law_norm(input(1), nothing) * (1 + 1e-6),
                   "what is left out is larger than the input");
    });
    if constexpr (requires(const codec_type& codec) { codec.residual(); }) {
        law("what is sent and what is kept are what was given", [&] {
            auto codec = bind();
            std::vector<T> given(dimension), sent(dimension);
            for (std::uint64_t number = 1; number <= 3; ++number) {
                const std::vector<T> own = input(number), result = detail::law_operation<T>(codec, number, own);
                for (std::size_t i = 0; i < dimension; ++i) given[i] += own[i], sent[i] += result[i];
            }
            for (std::size_t i = 0; i < dimension; ++i) sent[i] += codec.residual()[i];
            expect(detail::law_norm(sent, given) <= 1e-4 * detail::law_norm(given, std::vector<T>(dimension)),
                   "sent and residual do not add up to the inputs");
        });
        law("a contribution that is in no result returns", [&] {
            auto codec = bind();
            const std::vector<T> own = input(1);
            codec.begin(1);
            codec.encode(std::span<const T>(own));
            codec.rollback();
            expect(std::equal(own.begin(), own.end(), codec.residual().begin()), "the residual is not the input");
        });
    }
}

}  // namespace rill::inline RILL_ABI::testing
