#include "hot_call.hpp"

#include "errors.hpp"
#include "fast_function.hpp"

namespace pq {

namespace {

PyObject* run(PyObject* capsule, PyObject* const* inputs, Py_ssize_t count, PyObject* out) {
    try {
        return self_of<Prepared>(capsule)
                .run_if_fitting(inputs, static_cast<std::size_t>(count), out)
                .release()
                .ptr();
    } catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    if (count == 0) Py_RETURN_NOTIMPLEMENTED;
    return run(capsule, args, count - 1, args[count - 1]);
}

PyObject* call_in_tuple(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    if (count != 2 || !PyTuple_CheckExact(args[0])) Py_RETURN_NOTIMPLEMENTED;
    return run(capsule, reinterpret_cast<PyTupleObject*>(args[0])->ob_item,
               PyTuple_GET_SIZE(args[0]), args[1]);
}

PyMethodDef definition{"hot_call", as_definition(&call), METH_FASTCALL, nullptr};
PyMethodDef tuple_definition{"hot_call_in_tuple", as_definition(&call_in_tuple), METH_FASTCALL,
                             nullptr};

} // namespace

py::object hot_call(const py::object& prepared) {
    return fast_function(definition, &prepared.cast<Prepared&>(), prepared);
}

py::object hot_call_in_tuple(const py::object& prepared) {
    return fast_function(tuple_definition, &prepared.cast<Prepared&>(), prepared);
}

} // namespace pq
