// The call of a prepared primitive that costs nothing beside it: arrays that fit go straight
// through.
#pragma once

#include "primitive.hpp"

namespace pq {

// A function f(*inputs, out): runs the primitive and returns out, or a new array where out is None.
// Arrays that do not fit exactly run nothing: it returns NotImplemented, and somebody slower finds
// out why.
py::object hot_call(const py::object& prepared);

} // namespace pq
