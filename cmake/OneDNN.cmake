# Which library of oneDNN >= 3.7 (and < 4) the loader is to open: headers are our own (third_party/onednn).
#
#   1. the environment's PYONEDNN_Q_BUNDLE, a directory made by tools/release/onednn.py: the library goes into the wheel;
#   2. an explicit dnnl_DIR or dnnl_ROOT: this one or none;
#   3. a CMake package on the search path (CMAKE_PREFIX_PATH, a conda prefix, Debian's libdnnl-dev, oneAPI);
#   4. none: the `onednn` wheel or the system's library, whichever is there at run time.
#
# The bundle is named in the environment, since what the wheel depends on is decided by it too (pyproject.toml).
# Sets ONEDNN_BUNDLE (the directory or empty), and ONEDNN_LIBRARY (the shared library of a CMake package or empty).

set(ONEDNN_FLOOR 3.7)
set(ONEDNN_BUNDLE "$ENV{PYONEDNN_Q_BUNDLE}")
set(ONEDNN_LIBRARY "")
set(onednn_explicit ${dnnl_DIR} ${dnnl_ROOT} $ENV{dnnl_DIR} $ENV{dnnl_ROOT})
list(FILTER onednn_explicit EXCLUDE REGEX "-NOTFOUND$")

if(ONEDNN_BUNDLE)
    if(onednn_explicit)
        message(FATAL_ERROR
            "PYONEDNN_Q_BUNDLE puts ${ONEDNN_BUNDLE} into the wheel, and dnnl_DIR or dnnl_ROOT names ${onednn_explicit}: "
            "unset one of them.")
    endif()
    if(NOT EXISTS "${ONEDNN_BUNDLE}/lib/libdnnl_pyonednn_q.so.3")
        message(FATAL_ERROR
            "PYONEDNN_Q_BUNDLE is ${ONEDNN_BUNDLE}, which holds no lib/libdnnl_pyonednn_q.so.3: "
            "make it with tools/release/onednn.py, or unset it.")
    endif()
    message(STATUS "oneDNN goes into the wheel: ${ONEDNN_BUNDLE}")
    return()
endif()

if(onednn_explicit)
    list(GET onednn_explicit 0 onednn_asked)
    unset(dnnl_DIR CACHE)
    unset(dnnl_DIR)
    find_package(dnnl CONFIG QUIET NO_DEFAULT_PATH PATHS ${onednn_asked})
else()
    find_package(dnnl CONFIG QUIET)
    # What was searched for must not look asked for when CMake runs again.
    unset(dnnl_DIR CACHE)
endif()

set(onednn_seen "not found")
if(dnnl_FOUND)
    set(onednn_seen "oneDNN ${dnnl_VERSION}, ${dnnl_CONFIG}")
    if(dnnl_VERSION VERSION_LESS ONEDNN_FLOOR OR dnnl_VERSION VERSION_GREATER_EQUAL 4)
        set(dnnl_FOUND FALSE)
    endif()
endif()

if(dnnl_FOUND)
    # A static library is no use: there is nothing to open at run time.
    get_target_property(onednn_type DNNL::dnnl TYPE)
    if(onednn_type STREQUAL "SHARED_LIBRARY")
        set(ONEDNN_LIBRARY "$<TARGET_FILE:DNNL::dnnl>")
    else()
        string(APPEND onednn_seen " (static: not opened)")
    endif()
elseif(onednn_explicit)
    message(FATAL_ERROR
        "pyonednn_q needs oneDNN ${ONEDNN_FLOOR} or a later 3.x, and dnnl_DIR / dnnl_ROOT = ${onednn_asked} is no such: "
        "${onednn_seen}.\n"
        "Name the directory that holds dnnl-config.cmake, or leave it out: the library is opened at run time, and "
        "PYONEDNN_Q_LIBDNNL can name it then.")
endif()
message(STATUS "CMake package of oneDNN: ${onednn_seen}")
