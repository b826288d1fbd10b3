#pragma once

#include <rill/train/dataset.hpp>

#include <string>

namespace demo {

struct images {
    rill::train::dataset training;
    rill::train::dataset test;
};

/// Throws `rill::train::data_error`.
images read_images(const std::string& directory);

}  // namespace demo
