// expect: rill: C\+\+20 is missing; compile with -std=c\+\+20
// broken by: -std=c++17
#include <rill/rill.hpp>
