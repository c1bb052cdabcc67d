#include "hot_callable.hpp"

#include <array>
#include <new>
#include <structmember.h>
#include <utility>

namespace pq {

namespace {

struct HotCallable {
    PyObject object;
    vectorcallfunc call; // null until there is a hot way
    PyObject* hot;
};

HotCallable* as_hot(PyObject* self) {
    return reinterpret_cast<HotCallable*>(self);
}

// More arrays than that take the way of Python.
constexpr std::size_t most_inputs = 8;

constexpr unsigned long flag = Py_TPFLAGS_HAVE_VECTORCALL;

PyObject* call_name() {
    static PyObject* const name = PyUnicode_InternFromString("__call__");
    return name;
}

// What a hot way takes by name; Python knows what any other name means.
struct Named {
    PyObject *out = Py_None, *residual = Py_None;

    bool sort(PyObject* const* values, PyObject* names) {
        static PyObject* const out_name = PyUnicode_InternFromString("out");
        static PyObject* const residual_name = PyUnicode_InternFromString("residual");
        const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
        for (Py_ssize_t i = 0; i < count; ++i) {
            // Names in code are interned; any other goes the way of Python.
            PyObject* const name = PyTuple_GET_ITEM(names, i);
            if (name != out_name && name != residual_name) return false;
            (name == out_name ? out : residual) = values[i];
        }
        return true;
    }
};

PyObject* call_hot(PyObject* hot, PyObject* const* args, std::size_t count, const Named& named) {
    // The place before the first is the callee's own, by the protocol.
    std::array<PyObject*, 3 + most_inputs> passed{};
    std::size_t end = 1;
    for (std::size_t i = 0; i < count; ++i)
        passed[end++] = args[i];
    passed[end++] = named.residual;
    passed[end++] = named.out;
    // Another thread may set another one meanwhile.
    const auto held = py::reinterpret_borrow<py::object>(hot);
    return PyObject_Vectorcall(hot, passed.data() + 1, (end - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               nullptr);
}

PyObject* call_python(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
    const std::size_t named = names == nullptr ? 0 : std::size_t(PyTuple_GET_SIZE(names));
    try {
        std::vector<PyObject*> passed{self};
        passed.insert(passed.end(), args, args + count + named);
        return PyObject_VectorcallMethod(call_name(), passed.data(), count + 1, names);
    } catch (const std::bad_alloc&) { // for a list of arguments
        return PyErr_NoMemory();
    }
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flagged, PyObject* names) {
    const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flagged));
    PyObject* const hot = as_hot(self)->hot;
    Named named;
    if (hot != nullptr && count <= most_inputs && named.sort(args + count, names)) {
        PyObject* const dst = call_hot(hot, args, count, named);
        if (dst != Py_NotImplemented) return dst;
        Py_DECREF(dst);
    }
    return call_python(self, args, count, names);
}

PyObject* get_hot(PyObject* self, void* /*closure*/) {
    PyObject* const hot = as_hot(self)->hot;
    return Py_NewRef(hot == nullptr ? Py_None : hot);
}

int set_hot(PyObject* self, PyObject* value, void* /*closure*/) {
    PyObject* const hot = value == Py_None ? nullptr : value; // null, too, where it is deleted
    Py_XINCREF(hot);
    PyObject* const old = std::exchange(as_hot(self)->hot, hot);
    as_hot(self)->call = hot == nullptr ? nullptr : &call;
    Py_XDECREF(old);
    return 0;
}

// The class that a class has its `__call__` from; null if none.
PyTypeObject* caller_of(PyTypeObject* type, PyObject* name) {
    PyObject* const mro = type->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
        auto* const at = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
        if (at->tp_dict != nullptr && PyDict_Contains(at->tp_dict, name) == 1) return at;
    }
    return nullptr;
}

// Python looks for `call` only if the class has a flag, which classes written in Python lack. Those
// get it that say `hot=True` of their `__call__`, and those that inherit that `__call__`.
PyObject* init_subclass(PyObject* cls, PyObject* args, PyObject* named) {
    static const char* const names[] = {"hot", nullptr};
    int is_hot = 0;
    if (PyArg_ParseTupleAndKeywords(args, named, "|$p", const_cast<char**>(names), &is_hot) == 0)
        return nullptr;
    auto* const type = reinterpret_cast<PyTypeObject*>(cls);
    PyTypeObject* const caller = caller_of(type, call_name());
    const bool has_flag = caller == type
                                  ? is_hot != 0
                                  : caller != nullptr && PyType_HasFeature(caller, flag) != 0;
    type->tp_flags = has_flag ? type->tp_flags | flag : type->tp_flags & ~flag;
    Py_RETURN_NONE;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_hot(self)->hot);
    return 0;
}

int clear(PyObject* self) {
    as_hot(self)->call = nullptr;
    Py_CLEAR(as_hot(self)->hot);
    return 0;
}

void dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

} // namespace

py::object hot_callable() {
    static PyGetSetDef properties[] = {{"_hot", &get_hot, &set_hot,
                                        "f(*inputs, residual, out) -> dst or NotImplemented.",
                                        nullptr},
                                       {}};
    static PyMethodDef methods[] = {
            {"__init_subclass__",
             reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&init_subclass)),
             METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
            {}};
    static PyMemberDef members[] = {
            {"__vectorcalloffset__", T_PYSSIZET, offsetof(HotCallable, call), READONLY, nullptr},
            {}};
    static PyType_Slot slots[] = {
            {Py_tp_doc, const_cast<char*>("Calls `_hot` where arrays fit it, else `__call__`.")},
            {Py_tp_getset, properties},
            {Py_tp_methods, methods},
            {Py_tp_members, members},
            {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
            {Py_tp_clear, reinterpret_cast<void*>(&clear)},
            {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
            {0, nullptr}};
    static PyType_Spec spec{"pyonednn_q._core.HotCallable", sizeof(HotCallable), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyObject* const made = PyType_FromSpec(&spec);
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
}

} // namespace pq
