# The library's targets. rill::rill needs the standard library alone; each component adds the headers that need somebody
# else's library, and exists only where that library was found.

file(GLOB_RECURSE rill_unclaimed_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/rill/*.hpp)
set(rill_components "")

# rill_component(<name> HEADERS <path prefixes below include/rill>... LINKS <targets>...)
function(rill_component name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LINKS")
    list(JOIN arg_HEADERS "|" prefixes)
    set(headers ${rill_unclaimed_headers})
    list(FILTER headers INCLUDE REGEX "/include/rill/(${prefixes})")
    list(FILTER rill_unclaimed_headers EXCLUDE REGEX "/include/rill/(${prefixes})")
    set(rill_unclaimed_headers ${rill_unclaimed_headers} PARENT_SCOPE)
    foreach(dependency IN LISTS arg_LINKS)
        if(NOT TARGET ${dependency})
            message(STATUS "rill::${name} left out: no ${dependency}")
            return()
        endif()
    endforeach()
    add_library(rill_${name} INTERFACE)
    add_library(rill::${name} ALIAS rill_${name})
    set_target_properties(rill_${name} PROPERTIES EXPORT_NAME ${name})
    target_link_libraries(rill_${name} INTERFACE rill::rill ${arg_LINKS})
    target_sources(rill_${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
    set(rill_components ${rill_components} rill_${name} PARENT_SCOPE)
endfunction()

add_library(rill INTERFACE)
add_library(rill::rill ALIAS rill)
target_compile_features(rill INTERFACE cxx_std_20)

find_package(Threads QUIET)
find_package(Boost QUIET COMPONENTS context)
find_package(Eigen3 QUIET NO_MODULE)
find_package(ZLIB QUIET)

rill_component(threads HEADERS transport/in_process transport/detail/in_process LINKS Threads::Threads)
rill_component(simulated HEADERS transport/simulated transport/detail/simulated transport/detail/fiber LINKS Boost::context)
rill_component(train HEADERS train/ system/ LINKS Eigen3::Eigen ZLIB::ZLIB)
rill_component(testing HEADERS testing/ LINKS rill::threads rill::simulated)

target_sources(rill INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${rill_unclaimed_headers})
