# Finds the headers of oneDNN >= 3.7 (and < 4), in this order:
#
#   1. an explicit dnnl_DIR or dnnl_ROOT: this one or none;
#   2. a CMake package on the search path (CMAKE_PREFIX_PATH, a conda prefix, Debian's libdnnl-dev, oneAPI);
#   3. the onednn-devel wheel of the build Python.
#
# Sets ONEDNN_INCLUDE_DIR, ONEDNN_VERSION, ONEDNN_SOURCE (config | wheel), and ONEDNN_LIBRARY: the shared
# library of a CMake package, empty for the wheel, whose place is a matter of the run-time environment.

set(ONEDNN_FLOOR 3.7)
set(ONEDNN_CEILING 4)

# Reads the version from the headers at `include_dir`, or sets it empty.
function(onednn_header_version include_dir result)
    set(version "")
    set(header "${include_dir}/oneapi/dnnl/dnnl_version.h")
    if(EXISTS "${header}")
        foreach(part MAJOR MINOR PATCH)
            file(STRINGS "${header}" line REGEX "define DNNL_VERSION_${part} ")
            string(REGEX MATCH "[0-9]+" number "${line}")
            list(APPEND version "${number}")
        endforeach()
        list(JOIN version "." version)
    endif()
    set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Accepts the headers at `include_dir`, or notes in `onednn_seen` why not.
macro(onednn_consider what include_dir)
    onednn_header_version("${include_dir}" onednn_version)
    if(NOT onednn_version)
        string(APPEND onednn_seen "  - ${what}: no oneDNN headers in '${include_dir}'\n")
    elseif(onednn_version VERSION_LESS ONEDNN_FLOOR OR onednn_version VERSION_GREATER_EQUAL ONEDNN_CEILING)
        string(APPEND onednn_seen "  - ${what}: oneDNN ${onednn_version} in ${include_dir}\n")
    else()
        set(ONEDNN_VERSION "${onednn_version}")
        set(ONEDNN_INCLUDE_DIR "${include_dir}")
    endif()
endmacro()

set(ONEDNN_VERSION "")
set(ONEDNN_LIBRARY "")
set(onednn_seen "")
set(onednn_explicit ${dnnl_DIR} ${dnnl_ROOT} $ENV{dnnl_DIR} $ENV{dnnl_ROOT})
list(FILTER onednn_explicit EXCLUDE REGEX "-NOTFOUND$")

if(onednn_explicit)
    list(GET onednn_explicit 0 onednn_asked)
    set(onednn_what "dnnl_DIR / dnnl_ROOT = ${onednn_asked}")
    unset(dnnl_DIR CACHE)
    unset(dnnl_DIR)
    find_package(dnnl CONFIG QUIET NO_DEFAULT_PATH PATHS ${onednn_asked})
else()
    set(onednn_what "CMake package dnnl")
    find_package(dnnl CONFIG QUIET)
    # What was searched for must not look asked for when CMake runs again.
    unset(dnnl_DIR CACHE)
endif()

if(dnnl_FOUND)
    get_target_property(onednn_include DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
    list(GET onednn_include 0 onednn_include)
    onednn_consider("${onednn_what} (${dnnl_CONFIG})" "${onednn_include}")
    get_target_property(onednn_type DNNL::dnnl TYPE)
    # A static library serves its headers only: there is nothing to open at run time.
    if(ONEDNN_VERSION AND onednn_type STREQUAL "SHARED_LIBRARY")
        set(ONEDNN_LIBRARY "$<TARGET_FILE:DNNL::dnnl>")
    endif()
    set(ONEDNN_SOURCE config)
else()
    string(APPEND onednn_seen "  - ${onednn_what}: not found\n")
endif()

if(NOT ONEDNN_VERSION AND NOT onednn_explicit)
    execute_process(
        COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/onednn_wheel.py"
        OUTPUT_VARIABLE onednn_include
        OUTPUT_STRIP_TRAILING_WHITESPACE
    )
    if(onednn_include)
        onednn_consider("wheel onednn-devel" "${onednn_include}")
    else()
        string(APPEND onednn_seen "  - wheel onednn-devel: not installed for ${Python_EXECUTABLE}\n")
    endif()
    set(ONEDNN_SOURCE wheel)
endif()

if(NOT ONEDNN_VERSION)
    message(FATAL_ERROR
        "pyonednn_q needs oneDNN ${ONEDNN_FLOOR} or a later 3.x. What was found:\n${onednn_seen}"
        "Three ways out:\n"
        "  1. conda:      conda install -c conda-forge 'onednn-cpu-omp>=${ONEDNN_FLOOR}'\n"
        "  2. Debian 13:  apt install libdnnl-dev\n"
        "  3. wheels:     pip install onednn-devel\n"
        "A oneDNN elsewhere is named with -Ccmake.define.dnnl_DIR=<directory of dnnl-config.cmake>.\n"
    )
endif()

message(STATUS "oneDNN ${ONEDNN_VERSION} headers: ${ONEDNN_INCLUDE_DIR} (${ONEDNN_SOURCE})")
