#pragma once

#include <rill/concept/value_coding.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <vector>

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
