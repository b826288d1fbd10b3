#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The version of a model that `pull` has given: how many rounds it has behind it. A round in which nobody contributed
/// counts, though it moves nothing.
struct held_version {
    std::uint64_t version = 0;

    friend constexpr bool operator==(const held_version&, const held_version&) = default;
};

/// What became of one push.
struct push_fate {
    enum class outcome : unsigned char {
        counted,     ///< it is in the result of `round`
        too_old,     ///< it was dropped when `round` began, because of its age
        not_finite,  ///< it was refused: a value is a NaN or infinite; it counted with weight 0
        run_over     ///< the run was over before it counted, or before it was refused
    };

    std::uint64_t push = 0;  ///< which push of this rank, from 0
    outcome what = outcome::counted;
    std::uint64_t round = 0;     ///< from 0
    double weight = 0;           ///< of the gradient in its rank's contribution
    std::uint32_t age = 0;       ///< rounds after the model was pulled and before `round`
    std::size_t coordinate = 0;  ///< of `not_finite`: the first one

    friend constexpr bool operator==(const push_fate&, const push_fate&) = default;
};

/// A model that this rank works on while others move it. One loop serves all replicas:
///
///     while (const auto held = replica.pull(model)) {
///         gradient_at(model, gradient);
///         replica.push(gradient, *held);
///     }
///
/// - `pull(model)` writes the newest model and returns its version. It alone may wait, where the replica's staleness
///   says so. It returns nothing once the run has ended, and throws what has ended it early. On a rank that only serves
///   others, the first call waits for the end and writes nothing.
/// - `push(gradient, held)` hands over a gradient that was computed at the model that `held` names. It copies the
///   gradient and waits for nobody. Throws `contract_violation`, before anything is sent, if it is of another size, of
///   a version above the newest one that was pulled, or after `retire` or `end`.
/// - `fate()` returns what has become of a push that has not been told yet. Each is told once.
/// - `retire()`: this rank pushes no more, but serves the others. From then on `pull` waits for the end of the run.
/// - `end()`: the run ends, on all ranks after the same round. It asks for no further gradients; one that a rank is
///   computing may still count.
///
/// Laws: `testing::for_each_replica_law`.
template <class R, class T>
concept Replica =
    requires(R& replica, std::vector<T>& model, const std::vector<T>& gradient, const held_version& held) {
        { replica.pull(model) } -> std::same_as<std::optional<held_version>>;
        { replica.push(gradient, held) };
        { replica.fate() } -> std::same_as<std::optional<push_fate>>;
        { replica.retire() };
        { replica.end() };
    };

}}  // namespace rill::RILL_ABI
