// The number of threads the library uses, through the API of the runtime it was built with.
#pragma once

#include "common.hpp"

namespace pq {

// Of primitives made now: that of the innermost Threads, else what was set, else the runtime's own.
int get_num_threads();

// For primitives made from now on, in every thread. Throws ArgumentFault for n < 1.
void set_num_threads(int n);

// The calling thread has this number while it lives, and its own again afterwards. OpenMP keeps the
// number per thread, while oneDNN books scratchpads for the one that a descriptor was made with,
// keys its cache of primitives by the one that a primitive is made with, and works with the one
// that it is executed with: these must be the same. Does nothing on other runtimes.
class Threads {
public:
    explicit Threads(int n);
    ~Threads();
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

private:
    int own_ = 0;   // of the thread, to be set again; 0: it is as it was
    int outer_ = 0; // of the Threads around this one
};

// To be called before the calling thread runs a primitive that was made for so many threads. When
// there are more of them than at the last time, or this is the first, it throws std::bad_alloc
// unless there is memory to start them: OpenMP ends the process instead.
void reserve_team(int threads);

// Whether the library's runtime is an OpenMP that lends its threads.
bool has_team();

// Calls `part` on so many of them, the caller's included, with its number; returns when all are
// done.
void run_on_team(int threads, void (*part)(void* context, int thread), void* context);

} // namespace pq
