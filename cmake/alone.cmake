# clang compiles each header of the library once, as a module, and checks the units of our programs with these modules: it parses
# them and instantiates their templates, but generates no code. A module sees only what it includes itself. Objects and
# programs are empty files, by which Ninja knows what need not be compiled again.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "rill: RILL_ALONE needs clang, not ${CMAKE_CXX_COMPILER}")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(rill_module_map ${PROJECT_BINARY_DIR}/rill.modulemap)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/module_map.py ${rill_module_map} ${CMAKE_CXX_COMPILER}
                        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests
                OUTPUT_VARIABLE rill_modules OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/module_map.py)

# All units have one set of modules: for each set of language options and macros clang would make another.
string(PREPEND rill_modules "-O0 ")
string(APPEND rill_modules " \"-fmodules-cache-path=${PROJECT_BINARY_DIR}/modules\" -ferror-limit=0")
foreach(macro IN ITEMS BOOST_ALL_NO_LIB BOOST_CONTEXT_DYN_LINK MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX RILL_COMPILED RILL_SOURCE_DIR TBB_USE_DEBUG)
    string(APPEND rill_modules " -fmodules-ignore-macro=${macro}")
endforeach()
set(CMAKE_CXX_COMPILER_LAUNCHER "")  # ccache keeps nothing that is made with modules
set(rill_parse "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>")
set(CMAKE_CXX_COMPILE_OBJECT "${rill_parse} ${rill_modules}" "${CMAKE_COMMAND} -E touch <OBJECT>")
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
# How units of tests, examples and benchmarks are compiled: as if they were headers to be precompiled, for which clang does not
# instantiate the templates that nothing needs while it parses. This takes a tenth to a quarter of the time. The presets `dev` and
# `gcc` instantiate them. One that fails is compiled once more without modules, with which clang 16 takes two copies of a
# template's members for different ones where it has instantiated it in two modules.
string(REPLACE "-fsyntax-only <SOURCE>" "-x c++-header -o /dev/null <SOURCE>" rill_parse_only "${rill_parse}")
set(rill_parse_unit "${rill_parse_only} ${rill_modules} 2>/dev/null || ${rill_parse}" "${CMAKE_COMMAND} -E touch <OBJECT>")

# Every header, with nothing but its own component; ${rill_headers_made} is the target of the last. A component comes after
# those that it needs, so that each header is compiled with the include paths of its own.
function(rill_make_headers)
    set(before "")
    foreach(component IN ITEMS rill LISTS rill_available_components)
        get_target_property(headers ${component} HEADER_SET)
        set(unit ${PROJECT_BINARY_DIR}/headers/${component}.cpp)
        list(TRANSFORM headers REPLACE "^${PROJECT_SOURCE_DIR}/include/(.+)$" "#include <\\1>\n")
        list(JOIN headers "" text)
        file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
        add_library(rill_headers_${component} OBJECT ${unit})
        target_link_libraries(rill_headers_${component} PRIVATE rill_own_code ${component})
        if(before)
            add_dependencies(rill_headers_${component} ${before})
        endif()
        set(stamp ${PROJECT_BINARY_DIR}/headers/${component}.stamp)
        add_custom_command(OUTPUT ${stamp} COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
                           DEPENDS $<TARGET_OBJECTS:rill_headers_${component}>)
        set(before rill_headers_${component}_made)
        add_custom_target(${before} DEPENDS ${stamp})
    endforeach()
    set(rill_headers_made ${before} PARENT_SCOPE)
endfunction()
rill_make_headers()

# rill_after_headers(<folder>...): no unit of the folders' targets begins before all headers are compiled.
function(rill_after_headers)
    foreach(folder IN LISTS ARGN)
        get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
        foreach(target IN LISTS targets)
            add_dependencies(${target} ${rill_headers_made})
        endforeach()
    endforeach()
endfunction()
