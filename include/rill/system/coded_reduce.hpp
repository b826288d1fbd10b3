#pragma once

#include <rill/core/types.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/default_code.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/train/coded_bsp.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// The (width, depth)-regular tree of workers, and how many missing children a parent tolerates.
struct coded_reduce_options {
    int width = 2;
    int depth = 1;
    int stragglers = 0;
};

/// What `coded_reduce` and `gradient_coding` return.
template <class Optimizer, class Rate>
using coded_reduce_strategy = train::coded_bsp<topology::regular_tree, gradient_code::any_code, Optimizer, Rate>;

/// CodedReduce (Reisizadeh et al. 2022), with messages of T: a strategy for `train::trainer` on `topology.size()`
/// ranks, whose batches are `train::coded_batch`. `rate` multiplies the gradient of the mean loss of all points.
/// Deviation: the code is `gradient_code::default_code` for its numbers and T, because a random one loses the digits of
/// floats.
template <std::floating_point T = float, class Optimizer, class Rate>
coded_reduce_strategy<Optimizer, Rate> coded_reduce(const coded_reduce_options& chosen, const Optimizer& optimizer,
                                                    const Rate& rate) {
    return {{chosen.width, chosen.depth},
            gradient_code::default_code(chosen.width, chosen.stragglers, element_type_of<T>).code,
            optimizer,
            rate};
}

/// Gradient coding at one master (Tandon et al. 2017): CodedReduce on a tree of depth 1.
template <std::floating_point T = float, class Optimizer, class Rate>
coded_reduce_strategy<Optimizer, Rate> gradient_coding(int workers, int stragglers, const Optimizer& optimizer,
                                                       const Rate& rate) {
    return coded_reduce<T>({.width = workers, .depth = 1, .stragglers = stragglers}, optimizer, rate);
}

}}}  // namespace rill::RILL_ABI::systems
