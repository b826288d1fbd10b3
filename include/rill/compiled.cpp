// The one translation unit of `rill::compiled`; see rill/compiled.hpp.
#define RILL_COMPILED_HERE
#include <rill/compiled.hpp>
