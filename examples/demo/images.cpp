#include "images.hpp"

#include <rill/train/idx.hpp>

namespace demo {

images read_images(const std::string& directory) {
    const auto read = [&](const std::string& part) {
        const std::string prefix = directory + "/" + part;
        return rill::train::read_idx_dataset(prefix + "-images-idx3-ubyte.gz", prefix + "-labels-idx1-ubyte.gz", 10);
    };
    return {.training = read("train"), .test = read("t10k")};
}

}  // namespace demo
