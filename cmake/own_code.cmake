# How our own tests, benchmarks and examples are compiled; nothing of this reaches a user of rill::rill.

find_program(RILL_CCACHE ccache)
if(RILL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${RILL_CCACHE})
endif()

# rill_own_code: strict warnings, and the sanitizers and instruction set that a preset asks for.
set(CMAKE_CXX_EXTENSIONS OFF)
add_library(rill_own_code INTERFACE)
target_link_libraries(rill_own_code INTERFACE rill::rill)
target_compile_options(rill_own_code INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Kilobytes. Below this the compiler does not look for memory that it could reuse, which takes 5 % of its time.
    target_compile_options(rill_own_code INTERFACE --param=ggc-min-heapsize=1000000)
endif()
if(RILL_ARCH)
    target_compile_options(rill_own_code INTERFACE -march=${RILL_ARCH})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # False alarms of g++ 12 in Eigen's products with wide vectors.
        target_compile_options(rill_own_code INTERFACE -Wno-maybe-uninitialized)
    endif()
endif()
if(RILL_SANITIZE)
    target_compile_options(rill_own_code INTERFACE -fsanitize=${RILL_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
    target_link_options(rill_own_code INTERFACE -fsanitize=${RILL_SANITIZE})
endif()

# rill_link_components(<target> <component>...): links those of the components that exist. <target>_complete becomes false
# where one is missing.
function(rill_link_components target)
    set(complete TRUE)
    foreach(component IN LISTS ARGN)
        if(TARGET rill::${component})
            target_link_libraries(${target} PRIVATE rill::${component})
        else()
            set(complete FALSE)
        endif()
    endforeach()
    set(${target}_complete ${complete} PARENT_SCOPE)
endfunction()
