// Passes of our own over memory, on as many threads as the library may use.
#pragma once

#include "spans.hpp"

namespace pq {

void run_in_parallel(std::size_t count, std::size_t grain, Spans::Work work, const void* context);

// Calls work(begin, end) for pieces of [0, count) in any order, and from several threads at once
// where that pays; returns when all are done. `grain`: how many take some microseconds; pieces
// begin at multiples of it. Throws what a call threw. Keeps to `set_num_threads`. Needs no GIL.
template <typename Work>
void in_parallel(std::size_t count, std::size_t grain, const Work& work) {
    const auto call = [](const void* context, std::size_t begin, std::size_t end) {
        (*static_cast<const Work*>(context))(begin, end);
    };
    run_in_parallel(count, grain, call, &work);
}

// memcpy, in pieces where that pays.
void copy_bytes(const void* from, void* to, std::size_t nbytes);

} // namespace pq
