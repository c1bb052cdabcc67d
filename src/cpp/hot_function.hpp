// Functions of weights and options whose known calls run without a frame of Python.
#pragma once

#include "common.hpp"

namespace pq {

// f(src, wei, bias=None, *, out=None, residual=None, operands=None, **options): finds the operator
// of (kind, wei, bias, options) among the calls of a KnownCalls, and calls it with src, out and
// residual. What is not known, and calls with operands, are those of the function given, whose name
// and docstring Python puts onto what is returned here.
py::object hot_function(const py::object& function, const py::object& kind,
                        const py::object& calls);

} // namespace pq
