// Compile-time errors that name what a type lacks to model `Topology`.
#pragma once

#include <rill/concept/detail/first_unmet.hpp>
#include <rill/concept/regular.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Names the first requirement of `Schedule` that S does not meet.
template <class S>
consteval bool require_schedule() {
    constexpr int unmet = first_unmet(
        EqualityComparable<S>, Regular<S>,
        requires(const S& s) {
            { s.parts() } -> std::same_as<int>;
        },
        requires(const S& s) {
            { s.rounds() } -> std::same_as<int>;
        },
        requires(const S& s, int i) {
            { s.kind(i) } -> std::same_as<action>;
        },
        requires(const S& s, int i) {
            { s.sends(i) } -> std::same_as<int>;
        },
        requires(const S& s, int i) {
            { s.send(i, i) } -> std::same_as<transfer>;
        },
        requires(const S& s, int i) {
            { s.receives(i) } -> std::same_as<int>;
        },
        requires(const S& s, int i) {
            { s.receive(i, i) } -> std::same_as<transfer>;
        });
    static_assert(unmet != 0,
                  "rill::Schedule: operator== is missing; add `friend constexpr bool operator==(const S&, const S&) = "
                  "default;` to what the topology returns");
    static_assert(unmet != 1,
                  "rill::Schedule: a default constructor or a copy is missing, as std::regular asks; make the schedule "
                  "a value");
    static_assert(unmet != 2,
                  "rill::Schedule: parts() is missing; add `int parts() const` to what the topology returns");
    static_assert(unmet != 3,
                  "rill::Schedule: rounds() is missing; add `int rounds() const` to what the topology returns");
    static_assert(unmet != 4,
                  "rill::Schedule: kind(round) is missing; add `rill::action kind(int round) const` to what the "
                  "topology returns");
    static_assert(unmet != 5,
                  "rill::Schedule: sends(round) is missing; add `int sends(int round) const` to what the topology "
                  "returns");
    static_assert(
        unmet != 6,
        "rill::Schedule: send(round, i) is missing; add `rill::transfer send(int round, int i) const` to what "
        "the topology returns");
    static_assert(
        unmet != 7,
        "rill::Schedule: receives(round) is missing; add `int receives(int round) const` to what the topology "
        "returns");
    static_assert(unmet != 8,
                  "rill::Schedule: receive(round, i) is missing; add `rill::transfer receive(int round, int i) const` "
                  "to what the topology returns");
    return unmet == -1;
}

/// Names the first requirement of `Topology` that T does not meet.
template <class T>
consteval bool require_topology() {
    constexpr bool has_all_reduce = requires(const T& t, rank_t r) { t.all_reduce(r, r); };
    constexpr bool has_reduce_scatter = requires(const T& t, rank_t r) { t.reduce_scatter(r, r); };
    constexpr bool has_all_gather = requires(const T& t, rank_t r) { t.all_gather(r, r); };
    constexpr bool has_flags = requires {
        T::preserves_rank_order;
        T::has_copy_phase;
    };
    constexpr bool has_name = requires { T::name; };
    constexpr int unmet = first_unmet(has_all_reduce, has_reduce_scatter, has_all_gather, has_flags, has_name,
                                      EqualityComparable<T>, Regular<T>);
    static_assert(unmet != 0,
                  "rill::Topology: all_reduce(size, rank) is missing in what stands for the topology; pass "
                  "topology::ring{} or another one, or add it");
    static_assert(unmet != 1,
                  "rill::Topology: reduce_scatter(size, rank) is missing; add it, or forward to that of "
                  "topology::split_allgather");
    static_assert(unmet != 2,
                  "rill::Topology: all_gather(size, rank) is missing; add it, or forward to that of "
                  "topology::split_allgather");
    static_assert(unmet != 3,
                  "rill::Topology: a flag is missing; add `static constexpr bool` preserves_rank_order and "
                  "has_copy_phase");
    static_assert(unmet != 4, "rill::Topology: name is missing; add `static constexpr const char* name`");
    static_assert(unmet != 5,
                  "rill::Topology: operator== is missing; add `friend constexpr bool operator==(const T&, const T&) = "
                  "default;`");
    static_assert(unmet != 6,
                  "rill::Topology: a default constructor or a copy is missing, as std::regular asks; make the topology "
                  "a value");
    if constexpr (unmet == -1) {
        using shape = const T&;
        return require_schedule<decltype(std::declval<shape>().all_reduce(0, 0))>() &&
               require_schedule<decltype(std::declval<shape>().reduce_scatter(0, 0))>() &&
               require_schedule<decltype(std::declval<shape>().all_gather(0, 0))>();
    } else {
        return false;
    }
}

}}}  // namespace rill::RILL_ABI::detail
