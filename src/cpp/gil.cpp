#include "gil.hpp"

#include <atomic>
#include <unistd.h>

namespace pq {

namespace {

std::atomic<bool> ended{false}; // the interpreter, with all that its threads were

[[noreturn]] void wait_for_the_end() {
    while (true)
        pause();
}

} // namespace

GilReleased::~GilReleased() {
    if (ended.load()) wait_for_the_end();
    try {
        PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
        // Never left: the C library ends the process if this is caught and not thrown again.
        wait_for_the_end();
    }
}

void watch_for_the_end() {
    Py_AtExit([] { ended.store(true); });
}

} // namespace pq
