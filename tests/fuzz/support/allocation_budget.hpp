#pragma once

#include <cstddef>

namespace rill::fuzz {

/// While it lives, `new` and `malloc` may hand out so many bytes in total; who asks for more ends the process there.
/// The address sanitizer counts; without it nothing does.
class allocation_budget {
  public:
    explicit allocation_budget(std::size_t bytes);
    allocation_budget(const allocation_budget&) = delete;
    allocation_budget& operator=(const allocation_budget&) = delete;
    ~allocation_budget();
};

/// For exceptions and their texts, which do not grow with the input.
inline constexpr std::size_t error_texts = 4096;

}  // namespace rill::fuzz
