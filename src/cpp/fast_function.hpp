// Functions that Python calls without pybind11's dispatcher, which costs as much as a small
// primitive.
#pragma once

#include "common.hpp"

namespace pq {

// A function of the vectorcall protocol whose first argument is a capsule over `self`; it keeps
// `owner`, to which self belongs, alive. The definition is static.
py::object fast_function(PyMethodDef& definition, void* self, const py::object& owner);

// What the capsule is over.
template <typename Self>
Self& self_of(PyObject* capsule) {
    return *static_cast<Self*>(PyCapsule_GetPointer(capsule, nullptr));
}

// A function of the vectorcall protocol as a definition holds it.
inline PyCFunction as_definition(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace pq
