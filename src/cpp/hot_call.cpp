#include "hot_call.hpp"

#include "errors.hpp"
#include "fast_function.hpp"

namespace pq {

namespace {

PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    if (count == 0) Py_RETURN_NOTIMPLEMENTED;
    try {
        return self_of<Prepared>(capsule)
                .run_if_fitting(args, static_cast<std::size_t>(count - 1), args[count - 1])
                .release()
                .ptr();
    } catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyMethodDef definition{"hot_call", as_definition(&call), METH_FASTCALL, nullptr};

} // namespace

py::object hot_call(const py::object& prepared) {
    return fast_function(definition, &prepared.cast<Prepared&>(), prepared);
}

} // namespace pq
