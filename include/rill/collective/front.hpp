// What the front doors of the collectives share: arguments, signatures, the diagnostics of wrong compositions.
#pragma once

#include <rill/collective/dense_state.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/head.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/collective/tally.hpp>
#include <rill/concept/aggregator.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

namespace rill::inline RILL_ABI::detail {

template <class Range>
concept ContiguousRange = requires(Range& range) { std::span(range); };

template <class Range>
using element_of = typename decltype(std::span(std::declval<Range&>()))::value_type;

/// The ladder that every front door calls: names the first requirement that is not met.
template <class T, class Fold, class Shape>
constexpr void require_foldable() {
    static_assert(Element<T>,
                  "rill::collective: this element type cannot travel; use float, double, std::int32_t or std::int64_t");
    static_assert(
        Aggregator<Fold, T>,
        "rill::collective: the aggregator does not model Aggregator for this element type (a mean of integers?); "
        "see rill/concept/aggregator.hpp");
    if constexpr (Aggregator<Fold, T> && Topology<Shape>)
        static_assert(Fold::is_commutative || Shape::preserves_rank_order,
                      "rill::collective: the aggregator does not commute and the topology reorders ranks; use "
                      "topology::recursive_doubling, topology::split_allgather, topology::tree or topology::star");
}

inline void require_weight(const contribution& own) {
    RILL_EXPECTS(std::isfinite(own.weight) && own.weight >= 0, "a contribution's weight is finite and not negative");
}

template <class T, class Fold>
call_signature signature_of(operation kind, std::size_t dimension, const Fold& fold, std::uint8_t index_bytes = 0,
                            std::uint64_t more = 0) {
    return {.kind = kind,
            .element = element_type_of<T>,
            .index_bytes = index_bytes,
            .dimension = dimension,
            .options = mix64(fingerprint(fold), more)};
}

/// Releases a state's messages however a scope is left: others wait for them.
template <class State>
class release_at_end {
  public:
    explicit release_at_end(State& state) : state_(state) {}
    release_at_end(const release_at_end&) = delete;
    release_at_end& operator=(const release_at_end&) = delete;
    ~release_at_end() { state_.release(); }

  private:
    State& state_;
};

}  // namespace rill::inline RILL_ABI::detail
