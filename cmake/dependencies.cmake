# Which library each component of rill needs, and how it is found: read by rill's own build and, installed, by
# find_package(rill). Include this file after project(). It searches for nothing before rill_find_dependencies is called.

if(POLICY CMP0167)
    cmake_policy(SET CMP0167 NEW)  # Boost by its own configuration
endif()

# The components, each after those that it needs, and the third-party targets that each of them links.
set(rill_known_components threads simulated mpi tcp train eigen xtensor tbb graph testing compiled)
set(rill_threads_links Threads::Threads)
set(rill_simulated_links Boost::context)
set(rill_mpi_links MPI::MPI_C)
set(rill_train_links Eigen3::Eigen ZLIB::ZLIB)
set(rill_eigen_links Eigen3::Eigen)
set(rill_xtensor_links xtensor)
set(rill_tbb_links TBB::tbb)
set(rill_graph_links Boost::headers)
set(rill_mpi_needs threads)
set(rill_tcp_needs threads)
set(rill_testing_needs threads simulated)
set(rill_compiled_needs threads)

# For each third-party target: the arguments of find_package that define it, the least version, and the Debian package.
# Versions are compared here, because find_package(Eigen3 3.4) does not accept Eigen 5.
set(rill_find_Threads::Threads Threads)
set(rill_find_Boost::context Boost COMPONENTS context)
set(rill_find_MPI::MPI_C MPI COMPONENTS C)
set(rill_find_Eigen3::Eigen Eigen3 NO_MODULE)
set(rill_find_ZLIB::ZLIB ZLIB)
set(rill_find_xtensor xtensor)
set(rill_find_TBB::tbb TBB)
set(rill_find_Boost::headers Boost)
set(rill_least_Eigen3::Eigen 3.4)
set(rill_debian_Threads::Threads libc6-dev)
set(rill_debian_Boost::context libboost-context-dev)
set(rill_debian_MPI::MPI_C libopenmpi-dev or libmpich-dev)
set(rill_debian_Eigen3::Eigen libeigen3-dev)
set(rill_debian_ZLIB::ZLIB zlib1g-dev)
set(rill_debian_xtensor libxtensor-dev)
set(rill_debian_TBB::tbb libtbb-dev)
set(rill_debian_Boost::headers libboost-dev)

# CMake finds MPI::MPI_C only where C is enabled, and C can be enabled only outside functions.
macro(rill_enable_c_for_mpi)
    if(NOT CMAKE_C_COMPILER_LOADED AND NOT TARGET MPI::MPI_C AND NOT CMAKE_CURRENT_FUNCTION)
        include(CheckLanguage)
        check_language(C)
        if(CMAKE_C_COMPILER)
            enable_language(C)
        endif()
    endif()
endmacro()

# rill_find_target(<target> <variable>): finds a third-party target. <variable> becomes the reason where it is missing, and
# empty where it was found.
function(rill_find_target target trouble)
    get_property(known GLOBAL PROPERTY rill_trouble_with_${target})  # one that is too old stays a target
    set(${trouble} "${known}" PARENT_SCOPE)
    if(TARGET ${target})
        return()
    endif()
    list(GET rill_find_${target} 0 package)
    set(least "${rill_least_${target}}")
    find_package(${rill_find_${target}} QUIET)
    if(NOT TARGET ${target} OR NOT ${package}_FOUND)  # FindMPI makes its target even where there is no MPI
        list(JOIN rill_find_${target} " " how)
        set(how "find_package(${how})")
        list(JOIN rill_debian_${target} " " debian)
        if(target STREQUAL "MPI::MPI_C" AND NOT CMAKE_C_COMPILER_LOADED)
            string(APPEND how " without the language C")
        endif()
        set(known "${target} was not found by ${how}, on Debian it is in ${debian}")
        set(${trouble} "${known}" PARENT_SCOPE)
        if(TARGET ${target})
            set_property(GLOBAL PROPERTY rill_trouble_with_${target} "${known}")
        endif()
    elseif(least AND ${package}_VERSION AND ${package}_VERSION VERSION_LESS least)
        set(known "${target} is ${${package}_VERSION}, older than ${least}")
        set_property(GLOBAL PROPERTY rill_trouble_with_${target} "${known}")
        set(${trouble} "${known}" PARENT_SCOPE)
    endif()
endfunction()

# rill_find_dependencies(<component>): finds what a component and the components that it needs link.
# rill_<component>_trouble becomes the list of what is missing, with reasons; empty where all was found.
function(rill_find_dependencies component)
    set(found "")
    foreach(target IN LISTS rill_${component}_links)
        rill_find_target(${target} trouble)
        list(APPEND found ${trouble})
    endforeach()
    foreach(other IN LISTS rill_${component}_needs)
        rill_find_dependencies(${other})
        list(APPEND found ${rill_${other}_trouble})
    endforeach()
    list(JOIN found ", " found)
    set(rill_${component}_trouble "${found}" PARENT_SCOPE)
endfunction()
