#pragma once

#include <rill/core/types.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/default_code.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/topology/regular_tree.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// The (width, depth)-regular tree of workers, and how many missing children a parent tolerates.
struct coded_reduce_options {
    int width = 2;
    int depth = 1;
    int stragglers = 0;
};

/// What all ranks of CodedReduce share: pass tree and code to a `rill::coded_reduce`, and the allocation to each rank's
/// `train::coded_batch`.
struct coded_reduce_plan {
    topology::regular_tree tree;
    gradient_code::any_code code;
    coded_allocation allocation;
    std::string reason;  ///< why this code: `gradient_code::default_code`
};

/// Plans CodedReduce over `points` points, with messages of T. Source: Reisizadeh et al. 2022. Deviation: the code is
/// `default_code` for width, stragglers and T, because rounding errors drown the digits of floats in a random code.
template <std::floating_point T = float>
coded_reduce_plan coded_reduce(const coded_reduce_options& chosen, std::size_t points) {
    const topology::regular_tree tree{chosen.width, chosen.depth};
    gradient_code::code_choice choice =
        gradient_code::default_code(chosen.width, chosen.stragglers, element_type_of<T>);
    coded_allocation allocation(tree, choice.code, points);
    return {tree, std::move(choice.code), std::move(allocation), std::move(choice.reason)};
}

/// Plans gradient coding at one master: CodedReduce on a tree of depth 1. Source: Tandon et al. 2017.
template <std::floating_point T = float>
coded_reduce_plan gradient_coding(int workers, int stragglers, std::size_t points) {
    return coded_reduce<T>({.width = workers, .depth = 1, .stragglers = stragglers}, points);
}

}}}  // namespace rill::RILL_ABI::systems
