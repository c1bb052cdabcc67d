#include "fast_function.hpp"

namespace pq {

namespace {

void let_go(PyObject* capsule) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
}

} // namespace

py::object fast_function(PyMethodDef& definition, void* self, const py::object& owner) {
    PyObject* const made = PyCapsule_New(self, nullptr, &let_go);
    if (made == nullptr) throw py::error_already_set();
    const auto capsule = py::reinterpret_steal<py::capsule>(made);
    // The function keeps the capsule, the capsule the owner.
    PyCapsule_SetContext(made, py::object(owner).release().ptr());
    PyObject* const function = PyCFunction_NewEx(&definition, made, nullptr);
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
}

} // namespace pq
