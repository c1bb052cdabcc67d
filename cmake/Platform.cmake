# Refuses what is not Linux on x86-64, with the reason.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    message(FATAL_ERROR
        "This is ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}.\n"
        "pyonednn_q runs on Linux on x86-64 only: the INT8 kernels that it chooses, guards and predicts are "
        "oneDNN's for x86-64, and it opens the library as Linux does. macOS and Windows run it in a container "
        "or in WSL 2, on x86-64.\n"
    )
endif()
