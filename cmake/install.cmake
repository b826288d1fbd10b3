# cmake --install: headers, the CMake package and pkg-config files. The tree is the same on every machine and can be moved
# as a whole; nothing in it depends on an architecture, so everything goes below include/ and share/.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(RILL_INSTALL_CMAKEDIR ${CMAKE_INSTALL_DATADIR}/cmake/rill CACHE STRING "Where rill-config.cmake is installed")
set(RILL_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_DATADIR}/pkgconfig CACHE STRING "Where rill.pc is installed")
mark_as_advanced(RILL_INSTALL_CMAKEDIR RILL_INSTALL_PKGCONFIGDIR)
set(rill_generated ${PROJECT_BINARY_DIR}/cmake)

# rill_export(<target> <file>): one export set per component.
function(rill_export target file)
    install(TARGETS ${target} EXPORT ${target} FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT rill)
    install(EXPORT ${target} FILE ${file} NAMESPACE rill:: DESTINATION ${RILL_INSTALL_CMAKEDIR} COMPONENT rill)
endfunction()

rill_export(rill rill-targets.cmake)
list(TRANSFORM rill_components REPLACE "^rill_" "" OUTPUT_VARIABLE rill_component_names)
foreach(name IN LISTS rill_component_names)
    rill_export(rill_${name} rill-${name}-targets.cmake)
endforeach()

configure_package_config_file(cmake/rill-config.cmake.in ${rill_generated}/rill-config.cmake
                              INSTALL_DESTINATION ${RILL_INSTALL_CMAKEDIR} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change interfaces.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${rill_generated}/rill-config-version.cmake COMPATIBILITY ${compatibility}
                                 ARCH_INDEPENDENT)
install(FILES ${rill_generated}/rill-config.cmake ${rill_generated}/rill-config-version.cmake
        DESTINATION ${RILL_INSTALL_CMAKEDIR} COMPONENT rill)
install(FILES cmake/dependencies.cmake RENAME rill-dependencies.cmake
        DESTINATION ${RILL_INSTALL_CMAKEDIR} COMPONENT rill)
install(FILES include/rill/compiled.cpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rill COMPONENT rill)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "$<INSTALL_PREFIX>" OUTPUT_VARIABLE installed_headers)
target_sources(rill_compiled INTERFACE $<INSTALL_INTERFACE:${installed_headers}/rill/compiled.cpp>)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/rill COMPONENT rill)

# rill_pkgconfig(<name> DESCRIPTION <text> [REQUIRES <modules>] [FLAGS <flags>] [LIBS <flags>]): paths stay relative to
# the file.
function(rill_pkgconfig pc_name)
    cmake_parse_arguments(PARSE_ARGV 1 pc "" "DESCRIPTION;REQUIRES;FLAGS;LIBS" "")
    if(NOT pc_name STREQUAL "rill")
        string(PREPEND pc_REQUIRES "rill ")
    endif()
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY
               ${CMAKE_INSTALL_PREFIX}/${RILL_INSTALL_PKGCONFIGDIR} OUTPUT_VARIABLE to_prefix)
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pc_includedir)
    configure_file(cmake/rill.pc.in ${rill_generated}/${pc_name}.pc @ONLY)
    install(FILES ${rill_generated}/${pc_name}.pc DESTINATION ${RILL_INSTALL_PKGCONFIGDIR} COMPONENT rill)
endfunction()

# No file for mpi: MPI's own compiler, mpicxx, brings its flags, and the libraries do not agree on a module's name.
set(pc_of_threads FLAGS -pthread LIBS -pthread)
set(pc_of_simulated LIBS -lboost_context)
set(pc_of_tcp REQUIRES "rill-threads libssl >= 3.0 libcrypto")
set(pc_of_train REQUIRES "eigen3 zlib")
set(pc_of_eigen REQUIRES eigen3)
set(pc_of_xtensor REQUIRES xtensor)
set(pc_of_tbb REQUIRES tbb)
set(pc_of_graph REQUIRES rill)
set(pc_of_testing REQUIRES "rill-threads rill-simulated")
set(pc_of_compiled REQUIRES rill-threads FLAGS -DRILL_COMPILED)

rill_pkgconfig(rill DESCRIPTION "${PROJECT_DESCRIPTION}" FLAGS -I\${includedir})
foreach(name IN LISTS rill_component_names)
    if(pc_of_${name})
        rill_pkgconfig(rill-${name} DESCRIPTION "${PROJECT_DESCRIPTION}: component ${name}" ${pc_of_${name}})
    endif()
endforeach()
