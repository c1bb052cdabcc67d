// The base of Python classes whose calls run without a frame of Python as long as their arrays fit.
#pragma once

#include "common.hpp"

namespace pq {

// HotCallable: `object(*inputs, residual=None, out=None)` is `object._hot(*inputs, residual, out)`.
// Where that returns NotImplemented or is not set, and in calls of any other form, it is the
// `__call__` of the class.
// A slot of C for `__call__` would hide the signature and the docstring that Python's has.
py::object hot_callable();

} // namespace pq
