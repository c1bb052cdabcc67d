// The call of a prepared primitive that costs nothing beside it: arrays that fit go straight
// through.
#pragma once

#include "primitive.hpp"

namespace pq {

// A function f(*inputs, residual, out): runs the primitive and returns out, or a new array where
// out is None. Arrays that do not fit exactly run nothing: it returns NotImplemented, and somebody
// slower finds out why. The residual must be None.
py::object hot_call(const py::object& prepared);

// The same, where a sum reads the residual in place of out.
py::object hot_call_with_residual(const py::object& prepared);

// A function f(src, residual, out) of a source of float32: codes are made in the same call.
// NotImplemented, too, for NaN and for ranges that have no scale. None if the primitive reads more
// than the source brings along.
py::object hot_call_making_codes(const py::object& owner, CodeSource source);

} // namespace pq
