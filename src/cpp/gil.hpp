// Work without the GIL.
#pragma once

#include "common.hpp"

#include <cxxabi.h>

namespace pq {

// Gives up the GIL for as long as it lives. Python ends a daemon thread that wants the GIL back
// from an interpreter that has gone by unwinding its stack, which no destructor survives
// (pybind11's ends the process), and which would let go of Python objects without the GIL. Such a
// thread waits here for the end of the process instead.
class GilReleased {
public:
    GilReleased() : state_(PyEval_SaveThread()) {}
    ~GilReleased();
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

private:
    PyThreadState* state_;
};

// To be called once, when the extension is loaded.
void watch_for_the_end();

// Before catch (...): what ends a thread must go on to its first frame.
#define PQ_LET_THREADS_END                                                                         \
    catch (const abi::__forced_unwind&) {                                                          \
        throw;                                                                                     \
    }

} // namespace pq
