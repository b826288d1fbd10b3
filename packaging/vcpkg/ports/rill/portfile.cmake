# An overlay port: it builds the working copy that it lies in. All headers are installed whatever the features; a feature
# brings what its component links.
set(VCPKG_BUILD_TYPE release)  # headers only
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DRILL_BUILD_TESTS=OFF
        -DRILL_BUILD_BENCH=OFF
        -DRILL_BUILD_EXAMPLES=OFF
        -DRILL_INSTALL_CMAKEDIR=share/rill
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup()
# vcpkg checks that each module finds what it requires.
foreach(component IN ITEMS eigen tbb tcp train xtensor)
    if(NOT component IN_LIST FEATURES)
        file(REMOVE "${CURRENT_PACKAGES_DIR}/share/pkgconfig/rill-${component}.pc")
    endif()
endforeach()
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
