#include "hot_call.hpp"

#include "errors.hpp"

namespace pq {

namespace {

// A plain C function of the vectorcall protocol: pybind11's dispatcher costs as much as a small
// primitive.
PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    auto& prepared = *static_cast<Prepared*>(PyCapsule_GetPointer(capsule, nullptr));
    try {
        return prepared.run_if_fitting(args, static_cast<std::size_t>(count)).release().ptr();
    } catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyMethodDef definition{"hot_call",
                       reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                       METH_FASTCALL, nullptr};

void let_go(PyObject* capsule) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
}

} // namespace

py::object hot_call(const py::object& prepared) {
    PyObject* const made = PyCapsule_New(&prepared.cast<Prepared&>(), nullptr, &let_go);
    if (made == nullptr) throw py::error_already_set();
    const auto capsule = py::reinterpret_steal<py::capsule>(made);
    // The function keeps the capsule, the capsule the primitive.
    PyCapsule_SetContext(made, py::object(prepared).release().ptr());
    PyObject* const function = PyCFunction_NewEx(&definition, made, nullptr);
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
}

} // namespace pq
