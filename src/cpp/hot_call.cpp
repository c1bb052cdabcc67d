#include "hot_call.hpp"

#include "errors.hpp"
#include "fast_function.hpp"

namespace pq {

namespace {

PyObject* run(PyObject* capsule, PyObject* const* args, std::size_t count, bool takes_residual) {
    try {
        auto& prepared = self_of<Prepared>(capsule);
        const std::size_t inputs = prepared.inputs();
        if (count != inputs + 2) Py_RETURN_NOTIMPLEMENTED;
        PyObject *const residual = args[inputs], *const out = args[inputs + 1];
        if (residual != Py_None && !takes_residual) Py_RETURN_NOTIMPLEMENTED;
        return prepared.run_if_fitting(args, residual, out).release().ptr();
    } catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    return run(capsule, args, static_cast<std::size_t>(count), false);
}

PyObject* call_with_residual(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    return run(capsule, args, static_cast<std::size_t>(count), true);
}

PyMethodDef definition{"hot_call", as_definition(&call), METH_FASTCALL, nullptr};
PyMethodDef with_residual{"hot_call_with_residual", as_definition(&call_with_residual),
                          METH_FASTCALL, nullptr};

} // namespace

py::object hot_call(const py::object& prepared) {
    return fast_function(definition, &prepared.cast<Prepared&>(), prepared);
}

py::object hot_call_with_residual(const py::object& prepared) {
    return fast_function(with_residual, &prepared.cast<Prepared&>(), prepared);
}

} // namespace pq
