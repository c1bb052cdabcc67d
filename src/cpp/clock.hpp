// The clock that a core runs at, measured: a guest of a hypervisor is told of none.
#pragma once

namespace pq {

// Cycles a second of the fastest of many short runs on this thread, over 20 ms; 0 where no
// instruction of this processor is known to take a fixed number of cycles.
double clock_hz();

} // namespace pq
