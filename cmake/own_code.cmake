# How our own tests, benchmarks and examples are compiled; nothing of this reaches a user of rill::rill.

# A wrapper script that chooses the interpreter, as pyenv's, takes longer than most of the scripts that tests run.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)" OUTPUT_VARIABLE rill_python
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(TARGET Python3::Interpreter PROPERTY IMPORTED_LOCATION ${rill_python})

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
    # Without optimisation too, std::move and std::forward are casts, as they are for clang, instead of a function per type.
    target_compile_options(rill_own_code INTERFACE -ffold-simple-inlines)
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
if(RILL_SANITIZE)
    # The preset dev has the warnings of the same units. Under the thread sanitizer, what only cases use that are left out is
    # not used here.
    target_compile_options(rill_own_code INTERFACE -w)
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

# rill_sources(<target> [OPTIMISED <pattern>...] PATTERNS <pattern>... SOURCES <source>...): adds sources to a target. Under
# RILL_UNITY those whose names match a pattern are compiled as one unit, in which each stands in a namespace of its own. A
# source belongs to the first pattern that it matches. Those of OPTIMISED are compiled with -O1. Under the thread sanitizer a
# unit has only the cases that may start threads.
function(rill_sources target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIMISED;PATTERNS;SOURCES")
    set(sources ${arg_SOURCES})
    set(units "")
    set(groups "")
    set(least 2)
    set(cases "")
    set(generators ${PROJECT_SOURCE_DIR}/tools/group_units.py)
    if(RILL_SANITIZE MATCHES "thread")
        set(least 1)
        set(cases --thread-cases)
        file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/*.hpp)
        list(APPEND generators ${PROJECT_SOURCE_DIR}/tools/thread_cases.py ${headers})
    endif()
    foreach(pattern IN LISTS arg_OPTIMISED arg_PATTERNS)
        set(together ${sources})
        list(FILTER together INCLUDE REGEX "(^|/)(${pattern})\\.cpp$")
        list(LENGTH together length)
        set(compiled ${together})
        list(REMOVE_ITEM sources ${together})
        if(RILL_UNITY AND length GREATER_EQUAL least)
            list(GET together 0 first)
            cmake_path(GET first STEM name)
            list(TRANSFORM together PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
            set(compiled ${CMAKE_CURRENT_BINARY_DIR}/units/${target}/${name}.cpp)
            add_custom_command(OUTPUT ${compiled} DEPENDS ${together} ${generators} VERBATIM
                               COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/group_units.py ${cases} ${compiled}
                                       ${together})
            list(APPEND groups ${compiled})
        endif()
        list(APPEND units ${compiled})
        if(pattern IN_LIST arg_OPTIMISED)
            # Headers are precompiled without it.
            set_source_files_properties(${compiled} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
        endif()
    endforeach()
    target_sources(${target} PRIVATE ${units} ${sources})
    if(groups)
        # By a target of their own they wait for nothing that ${target} links.
        add_custom_target(${target}_units DEPENDS ${groups})
        add_dependencies(${target} ${target}_units)
    endif()
endfunction()

# rill_programs(<target> <prefix> <source>...): a program of each source, which has a function main at its end. Sources are
# relative: <folder>/<name>.cpp becomes <prefix><folder>_<name>. Under RILL_UNITY they are links to one program, <target>;
# otherwise each is a target. <target>_programs is the list of the targets.
function(rill_programs target prefix)
    set(names ${ARGN})
    list(TRANSFORM names REPLACE "\\.cpp$" "")
    list(TRANSFORM names REPLACE "/" "_")
    list(TRANSFORM names PREPEND ${prefix})
    set(targets ${names})
    if(RILL_UNITY)
        set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${target}.cpp)
        set(generator ${PROJECT_SOURCE_DIR}/tools/group_units.py)
        add_custom_command(OUTPUT ${unit} DEPENDS ${ARGN} ${generator} VERBATIM WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                           COMMAND Python3::Interpreter ${generator} --programs ${prefix} ${unit} ${ARGN})
        add_executable(${target} ${unit})
        foreach(name IN LISTS names)
            add_custom_command(TARGET ${target} POST_BUILD
                               COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE_NAME:${target}> ${name})
        endforeach()
        set(targets ${target})
    else()
        foreach(name source IN ZIP_LISTS names ARGN)
            add_executable(${name} ${source})
        endforeach()
    endif()
    set(${target}_programs ${targets} PARENT_SCOPE)
endfunction()
