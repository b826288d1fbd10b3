#pragma once

#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/collective/step_scope.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/serial.hpp>
#include <rill/topology/along.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A group whose calls can be undone: they keep in a `step_scope` what they are about to change on this rank. Otherwise
/// as `group`, whose collectives and `start_…` calls it takes. What the body of a plain `rill::start` calls on its lane
/// is not kept; call `step().keep(codec)` before. The scope must outlive the group; several groups, one after the
/// other, may have the same.
template <Transport Net, Topology Shape, Executor Exec = serial>
class step_group : public group<Net, Shape, Exec> {
  public:
    explicit step_group(step_scope& step, Net& net, Shape shape = {}, group_options options = {}, Exec executor = {})
        : group<Net, Shape, Exec>(net, std::move(shape), std::move(options), std::move(executor)), step_(&step) {}

    step_scope& step() const { return *step_; }

  private:
    step_scope* step_;
};

template <class Net, class Shape>
step_group(step_scope&, Net&, Shape) -> step_group<Net, typename topology::with_collectives<Shape>::type>;
template <class Net, class Shape>
step_group(step_scope&, Net&, Shape, group_options)
    -> step_group<Net, typename topology::with_collectives<Shape>::type>;
template <class Net, class Shape, class Exec>
step_group(step_scope&, Net&, Shape, group_options, Exec)
    -> step_group<Net, typename topology::with_collectives<Shape>::type, Exec>;

}}  // namespace rill::RILL_ABI
