#pragma once

/// `constexpr` for functions that use `std::vector`, where the standard library lets them be evaluated at compile time:
/// everywhere but in libstdc++'s debug mode.
#ifdef _GLIBCXX_DEBUG
#define RILL_CONSTEXPR_VECTORS inline
#else
#define RILL_CONSTEXPR_VECTORS constexpr
#endif
