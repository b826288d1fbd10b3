#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Writes `combine(values)` to entry i of every output, for each i of `part`, where `values` holds entry i of each
/// input, in the order of the inputs; zero if there is no input. `combine` may change `values`.
///
/// An output may be one of the inputs. Allocates only with more than 512 inputs.
template <Element T, class Inputs, class Combine>
void combine_columns(const Inputs& inputs, std::span<T* const> outputs, segment part, Combine&& combine) {
    std::array<T, 512> few;
    aligned_vector<T> many;
    if (inputs.size() > few.size()) many.resize(inputs.size());
    const std::span<T> column = many.empty() ? std::span<T>(few).first(inputs.size()) : span_of(many);
    for (std::size_t i = part.begin; i < part.end; ++i) {
        for (std::size_t k = 0; k < column.size(); ++k) column[k] = inputs[k][i];
        const T value = column.empty() ? T{} : combine(column);
        for (T* const out : outputs) out[i] = value;
    }
}

}}}  // namespace rill::RILL_ABI::kernel
