#pragma once

#include <rill/core/contract.hpp>
#include <rill/train/dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A copy of the rows of some classes, in their order; the i-th of the given classes becomes class i.
inline dataset select_classes(const dataset& data, std::initializer_list<std::int32_t> classes) {
    RILL_EXPECTS(classes.size() > 0, "select_classes: at least one class");
    dataset some{.columns = data.columns, .classes = static_cast<int>(classes.size()), .features = {}, .labels = {}};
    for (std::size_t row = 0; row < data.rows; ++row) {
        const auto* found = std::find(classes.begin(), classes.end(), data.labels[row]);
        if (found == classes.end()) continue;
        const auto features = data.row(row);
        some.features.append(features.begin(), features.end());
        some.labels.push_back(static_cast<std::int32_t>(found - classes.begin()));
    }
    some.rows = some.labels.size();
    return some;
}

}}}  // namespace rill::RILL_ABI::train
