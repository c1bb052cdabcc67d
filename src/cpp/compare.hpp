// Whether arrays hold the same bytes.
#pragma once

#include "common.hpp"

namespace pq {

// Adds `same_bytes(one, other)` to the module: true if two NumPy arrays have the same dims and item
// size and hold the same bytes, however they lie in memory. Called at each functional call, hence
// without pybind11's dispatcher. Large arrays are compared without the GIL.
void register_compare(py::module_& m);

} // namespace pq
