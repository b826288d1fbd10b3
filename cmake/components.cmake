# The library's targets. rill::rill needs the standard library alone. Each component adds the headers that need a
# third-party library. The target rill_<component> links that library by name only, so it is installed on every machine,
# with the library or without. The alias rill::<component> exists only where the library was found.

include(cmake/dependencies.cmake)

set(RILL_COMPONENTS "" CACHE STRING "The components to look for, a list; empty for all whose libraries are found")

set(rill_wanted ${rill_known_components})
if(RILL_COMPONENTS)
    set(rill_wanted ${RILL_COMPONENTS})
endif()
if("mpi" IN_LIST rill_wanted)
    rill_enable_c_for_mpi()
endif()

file(GLOB_RECURSE rill_unclaimed_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/rill/*.hpp)
set(rill_components "")            # targets of components, all of them
set(rill_available_components "")  # those whose libraries were found

# rill_headers(<target> <headers>...): the target's header set.
function(rill_headers target)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${ARGN})
endfunction()

# rill_component(<name> <path prefixes below include/rill>...)
function(rill_component name)
    list(JOIN ARGN "|" prefixes)
    set(headers ${rill_unclaimed_headers})
    list(FILTER headers INCLUDE REGEX "/include/rill/(${prefixes})")
    if(NOT headers)
        return()
    endif()
    list(REMOVE_ITEM rill_unclaimed_headers ${headers})
    set(rill_unclaimed_headers ${rill_unclaimed_headers} PARENT_SCOPE)

    # Not the aliases: some may be missing on this machine, and the exported target would depend on which.
    list(TRANSFORM rill_${name}_needs PREPEND rill_ OUTPUT_VARIABLE below)
    add_library(rill_${name} INTERFACE)
    set_target_properties(rill_${name} PROPERTIES EXPORT_NAME ${name})
    target_link_libraries(rill_${name} INTERFACE rill ${below} ${rill_${name}_links})
    rill_headers(rill_${name} ${headers})
    set(rill_components ${rill_components} rill_${name} PARENT_SCOPE)

    set(trouble "not in RILL_COMPONENTS")
    if(name IN_LIST rill_wanted)
        rill_find_dependencies(${name})
        set(trouble "${rill_${name}_trouble}")
    endif()
    if(NOT trouble)
        add_library(rill::${name} ALIAS rill_${name})
        set(rill_available_components ${rill_available_components} rill_${name} PARENT_SCOPE)
    elseif(RILL_COMPONENTS AND name IN_LIST rill_wanted)
        message(FATAL_ERROR "rill: no component ${name}, which RILL_COMPONENTS asks for: ${trouble}")
    else()
        set_target_properties(rill_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
        message(STATUS "rill::${name} left out: ${trouble}")
    endif()
endfunction()

add_library(rill INTERFACE)
add_library(rill::rill ALIAS rill)
target_compile_features(rill INTERFACE cxx_std_20)

rill_component(threads transport/in_process transport/detail/in_process "transport\\.hpp")
rill_component(simulated transport/simulated transport/detail/simulated transport/detail/fiber)
rill_component(mpi transport/mpi transport/detail/mpi)
rill_component(tcp transport/tcp transport/detail/tcp)
rill_component(train "train[/.]" "system[/.]")
rill_component(eigen adapt/eigen adapt/detail/eigen)
rill_component(xtensor adapt/xtensor adapt/detail/xtensor)
rill_component(tbb adapt/tbb adapt/detail/tbb)
rill_component(graph adapt/boost_matching)
rill_component(testing "testing[/.]")
rill_component(compiled "compiled\\.hpp")
rill_headers(rill ${rill_unclaimed_headers})

# Each target that links rill::compiled compiles the component's one source with the target's own flags. So both have the
# same contract level and instruction set.
target_compile_definitions(rill_compiled INTERFACE RILL_COMPILED)
target_sources(rill_compiled INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/rill/compiled.cpp>)

foreach(name IN LISTS RILL_COMPONENTS)
    if(NOT "rill_${name}" IN_LIST rill_components)
        list(TRANSFORM rill_components REPLACE "^rill_" "" OUTPUT_VARIABLE names)
        list(JOIN names ", " names)
        message(FATAL_ERROR "rill: RILL_COMPONENTS asks for ${name}, which is none of rill's components: ${names}")
    endif()
endforeach()
