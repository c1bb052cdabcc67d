// The number of threads the library uses, through the API of the runtime it was built with.
#pragma once

#include "common.hpp"

namespace pq {

int get_num_threads();

// For primitives made from now on, in every thread. Throws ArgumentFault for n < 1.
void set_num_threads(int n);

// OpenMP keeps its setting per thread; called before each create and execute, it costs one
// comparison.
void apply_num_threads();

// Whether the library's runtime is an OpenMP that lends its threads.
bool has_team();

// Calls `part` on each of them, the caller's included, with its number; returns when all are done.
void run_on_team(void (*part)(void* context, int thread), void* context);

} // namespace pq
