#pragma once

#include <rill/concept/detail/require_topology.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// One of several schedules, chosen at run time. Models `Schedule`.
template <class... Schedules>
class any_schedule {
  public:
    constexpr any_schedule() = default;
    template <class S>
        requires(std::same_as<S, Schedules> || ...)
    constexpr any_schedule(const S& schedule) : held_(schedule) {}  // NOLINT(google-explicit-constructor): it is one

    constexpr int parts() const {
        return std::visit([](const auto& s) { return s.parts(); }, held_);
    }
    constexpr int rounds() const {
        return std::visit([](const auto& s) { return s.rounds(); }, held_);
    }
    constexpr action kind(int round) const {
        return std::visit([&](const auto& s) { return s.kind(round); }, held_);
    }
    constexpr int sends(int round) const {
        return std::visit([&](const auto& s) { return s.sends(round); }, held_);
    }
    constexpr transfer send(int round, int i) const {
        return std::visit([&](const auto& s) { return s.send(round, i); }, held_);
    }
    constexpr int receives(int round) const {
        return std::visit([&](const auto& s) { return s.receives(round); }, held_);
    }
    constexpr transfer receive(int round, int i) const {
        return std::visit([&](const auto& s) { return s.receive(round, i); }, held_);
    }

    /// Answers `carries_one_part` for the schedule that it holds.
    constexpr bool holds_one_part_transfers() const {
        return std::visit([](const auto& s) { return rill::carries_one_part(s); }, held_);
    }

    friend constexpr bool operator==(const any_schedule&, const any_schedule&) = default;

  private:
    std::variant<Schedules...> held_{};
};

namespace detail {
/// `any_schedule` of the given types, each once.
template <class Listed, class... More>
struct any_schedule_of {
    using type = Listed;
};
template <class... Listed, class First, class... More>
struct any_schedule_of<any_schedule<Listed...>, First, More...>
    : any_schedule_of<std::conditional_t<(std::same_as<First, Listed> || ...), any_schedule<Listed...>,
                                         any_schedule<Listed..., First>>,
                      More...> {};

template <class Shape>
using all_reduce_schedule = decltype(std::declval<const Shape&>().all_reduce(0, rank_t{0}));
template <class Shape>
using reduce_scatter_schedule = decltype(std::declval<const Shape&>().reduce_scatter(0, rank_t{0}));
template <class Shape>
using all_gather_schedule = decltype(std::declval<const Shape&>().all_gather(0, rank_t{0}));
}  // namespace detail

/// One of several topologies, chosen at run time; by default the first. All ranks of a group must hold the same one:
/// the handshake compares it. Models `Topology`.
///
/// Results, bit for bit, and cost are those of the topology that it holds.
///
/// Its type promises what all candidates keep: it preserves the order of ranks, or has a copy phase, if each of them
/// does. Folds that do not commute need the type's promise. A lossy copy coding needs only a copy phase of the topology
/// that it holds, and a `JointAggregator` that this one folds at owners. It is a `RootedTopology` if a candidate is
/// one; then the others reduce and broadcast along `tree`, as their groups do.
template <class... Shapes>
class any_of {
    static_assert(sizeof...(Shapes) > 0, "rill::topology::any_of: names no candidate");
    static_assert((rill::detail::require_topology<Shapes>() && ...));

  public:
    static constexpr const char* name = "any";
    static constexpr bool preserves_rank_order = (Shapes::preserves_rank_order && ...);
    static constexpr bool has_copy_phase = (Shapes::has_copy_phase && ...);
    static constexpr bool is_rooted = (RootedTopology<Shapes> || ...);

    constexpr any_of() = default;
    template <class Shape>
        requires(std::same_as<Shape, Shapes> || ...)
    constexpr any_of(const Shape& shape) : held_(shape) {}  // NOLINT(google-explicit-constructor): it is one

    /// The name of the topology that it holds.
    constexpr const char* shape_name() const {
        return std::visit([]<class Shape>(const Shape&) { return static_cast<const char*>(Shape::name); }, held_);
    }
    /// Calls `use(shape)` with the topology that it holds, and returns what that returns: one type for all candidates.
    template <class Use>
    constexpr decltype(auto) visit(Use&& use) const {
        return std::visit(std::forward<Use>(use), held_);
    }

    constexpr auto all_reduce(int size, rank_t rank) const {
        using schedule = typename detail::any_schedule_of<any_schedule<>, detail::all_reduce_schedule<Shapes>...>::type;
        return visit([&](const auto& shape) { return schedule(shape.all_reduce(size, rank)); });
    }
    constexpr auto reduce_scatter(int size, rank_t rank) const {
        using schedule =
            typename detail::any_schedule_of<any_schedule<>, detail::reduce_scatter_schedule<Shapes>...>::type;
        return visit([&](const auto& shape) { return schedule(shape.reduce_scatter(size, rank)); });
    }
    constexpr auto all_gather(int size, rank_t rank) const {
        using schedule = typename detail::any_schedule_of<any_schedule<>, detail::all_gather_schedule<Shapes>...>::type;
        return visit([&](const auto& shape) { return schedule(shape.all_gather(size, rank)); });
    }
    constexpr auto reduce(int size, rank_t rank, rank_t root) const
        requires is_rooted
    {
        return rooted([&](const auto& shape) { return shape.reduce(size, rank, root); });
    }
    constexpr auto broadcast(int size, rank_t rank, rank_t root) const
        requires is_rooted
    {
        return rooted([&](const auto& shape) { return shape.broadcast(size, rank, root); });
    }

    /// Answers `preserves_rank_order` for the topology that it holds.
    constexpr bool holds_rank_order() const {
        return visit([](const auto& shape) { return rill::preserves_rank_order(shape); });
    }
    /// Answers `has_copy_phase` for the topology that it holds.
    constexpr bool holds_copy_phase() const {
        return visit([](const auto& shape) { return rill::has_copy_phase(shape); });
    }
    /// Answers `folds_at_owners` for the topology that it holds.
    constexpr bool holds_owner_folds() const
        requires(OwnerTopology<Shapes> || ...)
    {
        return visit([](const auto& shape) { return rill::folds_at_owners(shape); });
    }

    /// Calls `visit(name, number)` for the topology that it holds.
    template <class Visit>
    constexpr void visit_options(Visit&& visit_one) const {
        visit_one("shape", visit([](const auto& shape) { return rill::fingerprint(shape); }));
    }

    friend constexpr bool operator==(const any_of&, const any_of&) = default;

  private:
    template <class Shape>
    static constexpr auto rooted_of(const Shape& shape) {
        if constexpr (RootedTopology<Shape>)
            return shape;
        else
            return tree{};
    }
    template <class Of>
    constexpr auto rooted(const Of& of) const {
        using schedule =
            typename detail::any_schedule_of<any_schedule<>,
                                             decltype(of(rooted_of(std::declval<const Shapes&>())))...>::type;
        return visit([&](const auto& shape) { return schedule(of(rooted_of(shape))); });
    }

    std::variant<Shapes...> held_{};
};

/// Any of the shipped shapes.
using any = any_of<split_allgather, recursive_doubling, halving_doubling, ring, tree, star>;

static_assert(RootedTopology<any>);

}}}  // namespace rill::RILL_ABI::topology
