#include "allocation_budget.hpp"

#include "require.hpp"

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RILL_FUZZ_COUNTS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RILL_FUZZ_COUNTS
#endif

#ifdef RILL_FUZZ_COUNTS
extern "C" int __sanitizer_install_malloc_and_free_hooks(  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
    void (*)(const volatile void*, std::size_t), void (*)(const volatile void*));
#endif

namespace {

bool is_counting = false;
std::size_t budget = 0;
std::size_t given = 0;

#ifdef RILL_FUZZ_COUNTS
void count(const volatile void*, std::size_t size) {
    if (!is_counting) return;
    RILL_FUZZ_REQUIRE(size <= budget - given, "an allocation beyond what the input may cost");
    given += size;
}
const int hooks = __sanitizer_install_malloc_and_free_hooks(count, [](const volatile void*) {});
#endif

}  // namespace

namespace rill::fuzz {

allocation_budget::allocation_budget(std::size_t bytes) {
#ifdef RILL_FUZZ_COUNTS
    RILL_FUZZ_REQUIRE(hooks > 0, "a sanitizer that reports allocations");
#endif
    RILL_FUZZ_REQUIRE(!is_counting, "one budget at a time");
    budget = bytes;
    given = 0;
    is_counting = true;
}
allocation_budget::~allocation_budget() { is_counting = false; }

}  // namespace rill::fuzz
