// expect: rill::compress::encoded: lossy values need floating-point elements; use
#include <rill/compress/encoded.hpp>
#include <rill/compress/keep_all.hpp>

#include <cstdint>

#ifdef RILL_FIXED
const auto codec = rill::compress::encoded{rill::compress::keep_all{}}.bind<std::int32_t>(100);
#else
const auto codec = rill::compress::encoded{rill::compress::keep_all{}, rill::compress::qsgd{}}.bind<std::int32_t>(100);
#endif
