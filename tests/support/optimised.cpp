// Inline functions of rill and of the standard library, optimised: what the simulator and the protocols on it call
// most. The linker takes each inline function from the first object that has it, so this object stands first in
// programs that are otherwise not optimised. Their tests take a fourth of the time, while only this unit takes longer
// to compile. With clang, such an object is made of a precompiled header instead.
#include <rill/rill.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
