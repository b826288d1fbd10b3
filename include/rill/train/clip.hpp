#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The Euclidean norm, in double precision; summed as eight interleaved partial sums, so that the bits depend on the
/// values alone. If a value is NaN or infinite, so is the result.
template <std::floating_point T>
double norm(std::span<const T> values) {
    constexpr std::size_t lanes = 8;
    double sums[lanes]{};
    std::size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const double x = values[i + lane];
            sums[lane] += x * x;
        }
    for (; i < values.size(); ++i) sums[i % lanes] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    double total = 0;
    for (double sum : sums) total += sum;
    return std::sqrt(total);
}

/// Scales a gradient down to the norm `most` if its norm is larger and finite; the direction stays.
struct clip_norm {
    static constexpr const char* name = "clip_norm";
    static constexpr bool is_coordinatewise = false;

    double most = std::numeric_limits<double>::infinity();

    /// Returns the norm before scaling. If that is not finite, the gradient stays unchanged.
    template <std::floating_point T>
    double apply(std::span<T> gradient) const {
        rill::detail::require_option(most >= 0, "train::clip_norm: most", most, "at least 0");
        const double length = norm(std::span<const T>(gradient));
        if (std::isfinite(length) && length > most) {
            const T scale = static_cast<T>(most / length);
            for (T& value : gradient) value *= scale;
        }
        return length;
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("most", most);
    }
    friend constexpr bool operator==(const clip_norm&, const clip_norm&) = default;
};

/// Limits each coordinate to `[-most, most]`; a NaN stays.
struct clip_value {
    static constexpr const char* name = "clip_value";
    static constexpr bool is_coordinatewise = true;

    double most = std::numeric_limits<double>::infinity();

    template <std::floating_point T>
    void apply(std::span<T> gradient) const {
        rill::detail::require_option(most >= 0, "train::clip_value: most", most, "at least 0");
        const T bound = static_cast<T>(most);
        for (T& value : gradient) value = std::clamp(value, -bound, bound);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("most", most);
    }
    friend constexpr bool operator==(const clip_value&, const clip_value&) = default;
};

/// Applies another clipping to each bucket of a gradient as if it were the whole gradient: `clip_norm` then limits the
/// norm of each bucket, and buckets may be scaled by different factors.
template <class Clip>
struct per_bucket {
    static constexpr const char* name = "per_bucket";
    static constexpr bool is_coordinatewise = true;  ///< each part is clipped by itself

    Clip clip{};

    template <std::floating_point T>
    void apply(std::span<T> part) const {
        clip.apply(part);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("clip", fingerprint_if_named(clip));
    }
    friend constexpr bool operator==(const per_bucket&, const per_bucket&) = default;
};

template <class C>
per_bucket(C) -> per_bucket<C>;

/// Leaves a gradient as it is.
struct no_clip {
    static constexpr const char* name = "no_clip";
    static constexpr bool is_coordinatewise = true;

    template <std::floating_point T>
    constexpr void apply(std::span<T>) const {}
    friend constexpr bool operator==(no_clip, no_clip) = default;
};

/// What a strategy does to each rank's own finite gradient before it is sent: a value, a pure function.
/// `is_coordinatewise`: it may be applied to the parts of a gradient one by one. Ranks compare their clippings that
/// have a name, and options (`HasOptions`). A strategy applies it to an empty gradient when it is bound: impossible
/// options must throw there.
template <class C>
concept Clipping = Regular<C> && requires(const C& clip, std::span<float> gradient) {
    clip.apply(gradient);
    requires std::same_as<decltype(C::is_coordinatewise), const bool>;
};

namespace detail {
/// Throws what `clip` throws if its options are impossible. Called where a strategy is bound. In a step it would throw
/// only on ranks whose gradient is finite, since the others do not clip.
template <Clipping Clip>
void require_clipping(const Clip& clip) {
    clip.apply(std::span<float>());
}
}  // namespace detail

static_assert(Clipping<clip_norm>);
static_assert(Clipping<clip_value>);
static_assert(Clipping<no_clip>);
static_assert(Clipping<per_bucket<clip_norm>>);

}}}  // namespace rill::RILL_ABI::train
