#include <rill/rill.hpp>

int seen_by_the_other_unit();

int seen_by_the_other_unit() { return RILL_VERSION_MINOR; }
