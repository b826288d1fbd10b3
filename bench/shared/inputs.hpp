// Inputs for the kernels; the same arguments give the same inputs on every machine.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

using values = rill::aligned_vector<float>;

/// A random number in (0, 1).
inline double uniform(rill::random_sequence& random) { return (static_cast<double>(random.bits()) + 0.5) * 0x1p-32; }

/// `n` values, distributed as the name says: "gaussian", "laplace", "tied" (32 different magnitudes) or "zero".
inline values dense_input(const std::string& distribution, std::size_t n, std::uint64_t seed = 0) {
    rill::random_sequence random{rill::random_key{1}.derive(seed)};
    values x(n, 0.0F);  // written, because unwritten pages of zeros would all be one page
    if (distribution == "zero") return x;
    for (float& each : x) {
        if (distribution == "gaussian")
            each = static_cast<float>(std::sqrt(-2 * std::log(uniform(random))) *
                                      std::cos(6.283185307179586 * uniform(random)));
        else if (distribution == "laplace")
            each = static_cast<float>(uniform(random) < 0.5 ? std::log(uniform(random)) : -std::log(uniform(random)));
        else if (distribution == "tied")
            each = static_cast<float>(static_cast<int>(random.below(63)) - 31);
        else
            throw std::invalid_argument("no distribution is called " + distribution);
    }
    return x;
}

/// A sparse vector as structure of arrays.
struct sparse_input {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
};

/// Each of `n` coordinates with probability `density`, independently.
inline sparse_input random_sparse(std::size_t n, double density, std::uint64_t seed) {
    rill::random_sequence random{rill::random_key{2}.derive(seed)};
    sparse_input x;
    const double scale = 1 / std::log1p(-density);
    for (double at = std::floor(std::log(uniform(random)) * scale); at < static_cast<double>(n);
         at += 1 + std::floor(std::log(uniform(random)) * scale)) {
        x.indices.push_back(static_cast<std::uint32_t>(at));
        x.values.push_back(static_cast<float>(uniform(random)) - 0.5F);
    }
    return x;
}

}  // namespace bench
