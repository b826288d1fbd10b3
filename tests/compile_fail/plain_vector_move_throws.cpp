// expect: rill::plain_vector: objects may throw when they move
#include <rill/core/plain_vector.hpp>

struct entry {
    entry() = default;
#ifdef RILL_FIXED
    entry(entry&&) noexcept {}
#else
    entry(entry&&) {}
#endif
};

void fill(rill::plain_vector<entry>& entries) { entries.add(entry{}); }
