// Inline functions of rill and of the standard library, optimised: what the simulator and the protocols on it call
// most. The linker takes each inline function from the first object that has it, so this object stands first in
// programs that are otherwise not optimised. Their tests take a fourth of the time with g++ and about half with clang,
// while only this unit takes longer to compile.
#ifdef __clang__
// clang drops an inline function that its unit does not call, unless it is weak. Others' headers come first: what they
// have is not weak, and is kept where rill calls it.
#include <immintrin.h>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <bits/stdc++.h>
#pragma clang attribute push(__attribute__((weak)), apply_to = function)
#endif
#include <rill/rill.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#ifdef __clang__
#pragma clang attribute pop
#endif
