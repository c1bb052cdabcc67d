# pybind11 >= 3. A build by pip has its directory on the search path; a plain `cmake --preset default`
# does not, so the build Python is asked.

if(NOT pybind11_DIR)
    execute_process(
        COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
        OUTPUT_VARIABLE pybind11_cmakedir
        OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET
    )
    set(pybind11_HINTS "${pybind11_cmakedir}")
endif()
find_package(pybind11 3 CONFIG REQUIRED HINTS ${pybind11_HINTS})
