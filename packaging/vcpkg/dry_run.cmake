# A dry run of the overlay port, without vcpkg: usage: cmake -DWORK=<empty folder> -P dry_run.cmake
#
# Reads vcpkg.json and follows portfile.cmake with stand-ins for vcpkg's functions that do what matters to a header-only
# port. What it leaves in WORK/installed is laid out as vcpkg would. It does not show that vcpkg accepts the port, nor that
# vcpkg's own libraries suit it.
cmake_minimum_required(VERSION 3.25)

set(PORT rill)
set(port_folder ${CMAKE_CURRENT_LIST_DIR}/ports/${PORT})
set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
set(CURRENT_PACKAGES_DIR ${WORK}/installed)

function(expect what)
    if(NOT (${ARGN}))
        message(FATAL_ERROR "vcpkg dry run: ${what}")
    endif()
endfunction()

# vcpkg.json: its names, the version of the headers, and a feature for each component that links somebody else's library.
function(check_manifest)
    file(READ ${port_folder}/vcpkg.json manifest)
    string(JSON name GET "${manifest}" name)
    string(JSON version GET "${manifest}" version-semver)
    string(JSON license GET "${manifest}" license)
    file(STRINGS ${root}/include/rill/core/config.hpp numbers REGEX "^#define RILL_VERSION_(MAJOR|MINOR|PATCH) ")
    list(TRANSFORM numbers REPLACE "^.* " "")
    list(JOIN numbers "." of_headers)
    expect("the port is called ${name}" name STREQUAL PORT)
    expect("vcpkg.json is of version ${version}, the headers of ${of_headers}" version STREQUAL of_headers)
    expect("the licence is ${license}" license STREQUAL "Apache-2.0")

    include(${root}/cmake/dependencies.cmake)
    set(wanted ${rill_known_components})
    list(REMOVE_ITEM wanted threads testing compiled)
    list(SORT wanted)
    set(features "")
    string(JSON count LENGTH "${manifest}" features)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
        string(JSON feature MEMBER "${manifest}" features ${index})
        string(JSON description GET "${manifest}" features ${feature} description)
        string(JSON first GET "${manifest}" features ${feature} dependencies 0)
        expect("feature ${feature} says and needs nothing" description AND first MATCHES "^[a-z0-9-]+$")
        list(APPEND features ${feature})
    endforeach()
    list(JOIN wanted " " wanted)
    list(JOIN features " " features)
    expect("features are '${features}', components '${wanted}'" features STREQUAL wanted)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    expect("unknown arguments ${arg_UNPARSED_ARGUMENTS}" NOT arg_UNPARSED_ARGUMENTS)
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
                            -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DBUILD_SHARED_LIBS=OFF ${arg_OPTIONS}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --target install
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_config_fixup)
    expect("no CMake package where vcpkg wants it" EXISTS ${CURRENT_PACKAGES_DIR}/share/${PORT}/rill-config.cmake)
endfunction()

function(vcpkg_fixup_pkgconfig)
    set(folder ${CURRENT_PACKAGES_DIR}/share/pkgconfig)
    expect("no rill.pc where vcpkg wants it" EXISTS ${folder}/rill.pc)
    file(GLOB modules ${folder}/*.pc)
    foreach(module IN LISTS modules)
        execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${folder} pkg-config --print-errors --exists ${module}
                        RESULT_VARIABLE lacks)
        expect("a module requires what no feature has brought: ${module}" NOT lacks)
    endforeach()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(COPY_FILE ${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright)
endfunction()

check_manifest()
set(FEATURES core)  # none is chosen
include(${port_folder}/portfile.cmake)
file(GLOB left RELATIVE ${CURRENT_PACKAGES_DIR} ${CURRENT_PACKAGES_DIR}/* ${CURRENT_PACKAGES_DIR}/share/*)
list(JOIN left " " left)
expect("vcpkg wants nothing but headers and share/${PORT}, there is '${left}'"
       left STREQUAL "include share share/pkgconfig share/rill")
message(STATUS "vcpkg dry run: the port's steps work; vcpkg itself was not run")
