// The rooms of the extension; each is bound by register_<room>.cpp.
#pragma once

#include "common.hpp"

namespace pq {

void register_errors();
void register_runtime(py::module_& m);
void register_memory(py::module_& m);
void register_primitive(py::module_& m);
void register_pass(py::module_& m);
void register_program(py::module_& m);
void register_requantize(py::module_& m);
void register_quantize(py::module_& m);
void register_cast(py::module_& m);
void register_groups(py::module_& m);
void register_attention(py::module_& m);

} // namespace pq
