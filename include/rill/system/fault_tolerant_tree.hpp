#pragma once

#include <rill/topology/backup_tree.hpp>
#include <rill/train/bsp.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// Parallel SGD over a tree that goes round links that fall silent (Padrão 2020, chapter 6).
///
/// Deviation from the source: silence is measured by default; `detect::fixed(milliseconds(500))` is the thesis.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using fault_tolerant_tree_strategy = train::bsp<topology::backup_tree, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies the mean gradient in the optimizer; `tree` says the degree
/// and when a link is silent; `clip` acts on each rank's own gradient.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr fault_tolerant_tree_strategy<Optimizer, Rate, Clip> fault_tolerant_tree(
    const Optimizer& optimizer, const Rate& rate, const topology::backup_tree& tree = {}, const Clip& clip = {}) {
    return {tree, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems
