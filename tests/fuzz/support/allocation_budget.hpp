#pragma once

#include <cstddef>

namespace rill::fuzz {

/// Limits the total bytes that `new` and `malloc` may return during its life; exceeding the limit ends the process.
/// Works only under the address sanitizer, which counts the bytes.
class allocation_budget {
  public:
    explicit allocation_budget(std::size_t bytes);
    allocation_budget(const allocation_budget&) = delete;
    allocation_budget& operator=(const allocation_budget&) = delete;
    ~allocation_budget();
};

/// Room for exceptions and their texts, whose size does not depend on the input.
inline constexpr std::size_t error_texts = 4096;

}  // namespace rill::fuzz
