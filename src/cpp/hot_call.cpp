#include "hot_call.hpp"

#include "errors.hpp"
#include "gil.hpp"

#include <memory>
#include <utility>

namespace pq {

namespace {

PyObject* run(PyObject* capsule, PyObject* const* args, std::size_t count, bool takes_residual) {
    try {
        auto& prepared = *static_cast<Prepared*>(PyCapsule_GetPointer(capsule, nullptr));
        const std::size_t inputs = prepared.inputs();
        if (count != inputs + 2) Py_RETURN_NOTIMPLEMENTED;
        PyObject *const residual = args[inputs], *const out = args[inputs + 1];
        if (residual != Py_None && !takes_residual) Py_RETURN_NOTIMPLEMENTED;
        return prepared.run_if_fitting(args, residual, out).release().ptr();
    }
    PQ_LET_THREADS_END
    catch (...) {
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

struct MakingCall {
    py::object owner;
    Prepared& prepared;
    CodeSource source;
};

PyObject* call_making_codes(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    try {
        if (count != 3) Py_RETURN_NOTIMPLEMENTED;
        auto& of = *static_cast<MakingCall*>(PyCapsule_GetPointer(capsule, nullptr));
        return of.prepared.run_if_source_fits(of.source, args[0], args[1], args[2]).release().ptr();
    }
    PQ_LET_THREADS_END
    catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyCFunction as_definition(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef definition{"hot_call", as_definition(&call), METH_FASTCALL, nullptr};
PyMethodDef with_residual{"hot_call_with_residual", as_definition(&call_with_residual),
                          METH_FASTCALL, nullptr};
PyMethodDef making_codes{"hot_call_making_codes", as_definition(&call_making_codes), METH_FASTCALL,
                         nullptr};

void let_go(PyObject* capsule) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
}

// A function of the vectorcall protocol: pybind11's dispatcher costs as much as a small primitive.
// The function keeps a capsule, the capsule the primitive.
py::object fast_function(PyMethodDef& of, const py::object& prepared) {
    PyObject* const made = PyCapsule_New(&prepared.cast<Prepared&>(), nullptr, &let_go);
    if (made == nullptr) throw py::error_already_set();
    const auto capsule = py::reinterpret_steal<py::capsule>(made);
    PyCapsule_SetContext(made, py::object(prepared).release().ptr());
    PyObject* const function = PyCFunction_NewEx(&of, made, nullptr);
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
}

void let_go_of_making(PyObject* capsule) {
    delete static_cast<MakingCall*>(PyCapsule_GetPointer(capsule, nullptr));
}

} // namespace

py::object hot_call(const py::object& prepared) {
    return fast_function(definition, prepared);
}

py::object hot_call_with_residual(const py::object& prepared) {
    return fast_function(with_residual, prepared);
}

py::object hot_call_making_codes(const py::object& owner, CodeSource source) {
    auto& prepared = owner.cast<Prepared&>();
    if (!prepared.reads_only(source)) return py::none();
    source.is_signed = prepared.takes_signed();
    auto call = std::make_unique<MakingCall>(MakingCall{owner, prepared, std::move(source)});
    PyObject* const made = PyCapsule_New(call.get(), nullptr, &let_go_of_making);
    if (made == nullptr) throw py::error_already_set();
    call.release(); // the capsule deletes it
    const auto capsule = py::reinterpret_steal<py::capsule>(made);
    PyObject* const function = PyCFunction_NewEx(&making_codes, made, nullptr);
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
}

} // namespace pq
