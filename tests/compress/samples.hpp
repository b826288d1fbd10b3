// Gradients, and checkpoints in memory, that the tests of compressors share.
#pragma once

#include <rill/core/random.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace rill::compress_tests {

/// Noise of many magnitudes, so that sums round; for integer types whole numbers, with ties.
template <class T>
std::vector<T> gradient(std::size_t n, std::uint64_t seed) {
    random_sequence random(random_key{seed});
    std::vector<T> values(n);
    for (T& value : values) {
        if constexpr (std::floating_point<T>) {
            const T u = static_cast<T>(random.uniform()) * T{2} - T{1};
            value = u * u * u;
        } else {
            value = static_cast<T>(random.below(201)) - T{100};
        }
    }
    return values;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Stands in for a checkpoint: named arrays in memory.
class memory_checkpoint {
  public:
    template <class Range>
    void add(const std::string& name, const Range& values) {
        const auto bytes = std::as_bytes(std::span(values));
        sections_[name].assign(bytes.begin(), bytes.end());
    }
    template <class Range>
    void read(const std::string& name, Range&& values) const {
        const auto bytes = std::as_writable_bytes(std::span(values));
        const auto& section = sections_.at(name);
        if (section.size() != bytes.size()) throw std::string("another size than was stored");
        std::copy(section.begin(), section.end(), bytes.begin());
    }

  private:
    std::map<std::string, std::vector<std::byte>> sections_;
};

}  // namespace rill::compress_tests
