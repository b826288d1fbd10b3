# What most tests and examples include, compiled once for all of them.

# Where RILL_UNITY is off, or something is missing, `rill_precompiled_headers` does nothing.
if(RILL_UNITY AND TARGET rill::threads AND TARGET rill::simulated AND TARGET rill::testing)
    # A target of its own, so that no other one waits for another.
    file(CONFIGURE OUTPUT headers.cpp CONTENT "")
    add_library(rill_own_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
    target_link_libraries(rill_own_headers PRIVATE rill_own_code rill::threads rill::simulated rill::testing)
    target_precompile_headers(rill_own_headers PRIVATE <rill/rill.hpp> <rill/transport/in_process.hpp>
                                                       <rill/transport/simulated.hpp>)

    # Optimised copies of the inline functions that simulated ranks call most. Ninja links objects of libraries before those of
    # the program, and so these are called.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_library(rill_own_optimised OBJECT EXCLUDE_FROM_ALL tests/support/optimised.cpp)
        target_compile_options(rill_own_optimised PRIVATE -O1 -fkeep-inline-functions)
    else()
        # Clang makes an object of a precompiled header; units that use the header have no code of these functions.
        set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/rill_own_headers.dir/cmake_pch.hxx.pch)
        set_source_files_properties(${header} PROPERTIES GENERATED TRUE LANGUAGE CXX OBJECT_DEPENDS ${header})
        add_library(rill_own_optimised OBJECT EXCLUDE_FROM_ALL ${header})
        add_dependencies(rill_own_optimised rill_own_headers)
        target_compile_options(rill_own_headers PRIVATE -fpch-codegen)
        target_compile_options(rill_own_optimised PRIVATE -O1 "SHELL:-x ast" -Wno-unused-command-line-argument)
    endif()
    target_link_libraries(rill_own_optimised PRIVATE rill_own_code PUBLIC rill::threads rill::simulated rill::testing)
endif()

# rill_precompiled_headers(<target>): units of the target that are not optimised use the precompiled headers.
function(rill_precompiled_headers target)
    if(TARGET rill_own_headers)
        target_precompile_headers(${target} REUSE_FROM rill_own_headers)
        target_link_libraries(${target} PRIVATE rill_own_optimised)
    endif()
endfunction()
