#pragma once

#include <rill/core/contract.hpp>
#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/detail/dual.hpp>
#include <rill/gradient_code/detail/linear.hpp>
#include <rill/gradient_code/dual_code.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// Makes the code of a matrix B given by the caller. `values` holds it row by row, one row per worker.
///
/// Checks that the gradient is decodable whichever `stragglers` workers are lost: for all sets of them if there are at
/// most 20,000, else for 1,000 random ones and those of cyclic neighbours. A matrix that fails the check breaks the
/// contract.
inline dual_code given_code(int workers, int partitions, int stragglers, std::span<const double> values) {
    RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                 "given_code: stragglers are at least 0 and fewer than the workers");
    RILL_EXPECTS(partitions > 0, "given_code: no partition");
    detail::matrix b{static_cast<std::size_t>(workers), static_cast<std::size_t>(partitions)};
    RILL_EXPECTS(values.size() == b.values.size(), "given_code: the matrix has not workers · partitions elements");
    RILL_EXPECTS(std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }),
                 "given_code: the matrix has an element that is not finite");
    std::copy(values.begin(), values.end(), b.values.begin());
    dual_code code(b, stragglers, detail::dual_of(b, std::min(b.rows, b.columns)));
    RILL_EXPECTS(std::isfinite(amplification(code).worst),
                 "given_code: without some set of stragglers the rows cannot be combined to all ones");
    return code;
}

}}}  // namespace rill::RILL_ABI::gradient_code
