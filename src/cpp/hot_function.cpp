#include "hot_function.hpp"

#include "errors.hpp"
#include "known_calls.hpp"

#include <structmember.h>

namespace pq {

namespace {

struct HotFunction {
    PyObject object;
    vectorcallfunc call;
    PyObject *function, *kind, *calls;
    KnownCalls* known; // what `calls` is in Python
    PyObject *dict, *weak_references;
};

HotFunction* as_hot(PyObject* self) {
    return reinterpret_cast<HotFunction*>(self);
}

// The parameters, by their places in a call's arguments; the first three need no name.
enum Parameter { src, wei, bias, out, residual, operands, count };
constexpr std::size_t most_unnamed = 3;

using Names = std::array<PyObject*, Parameter::count>;

const Names& parameter_names() {
    static const Names names{
            PyUnicode_InternFromString("src"),      PyUnicode_InternFromString("wei"),
            PyUnicode_InternFromString("bias"),     PyUnicode_InternFromString("out"),
            PyUnicode_InternFromString("residual"), PyUnicode_InternFromString("operands")};
    return names;
}

struct Arguments {
    std::array<PyObject*, Parameter::count> given{};
    Options options;

    // False: Python takes such calls, or says what is wrong with them.
    bool sort(PyObject* const* args, std::size_t unnamed, PyObject* names);

private:
    bool sort_named(PyObject* name, PyObject* value);
};

bool Arguments::sort(PyObject* const* args, std::size_t unnamed, PyObject* names) {
    if (unnamed > most_unnamed) return false;
    for (std::size_t i = 0; i < unnamed; ++i)
        given[i] = args[i];
    const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named; ++i)
        if (!sort_named(PyTuple_GET_ITEM(names, i), args[unnamed + static_cast<std::size_t>(i)]))
            return false;
    if (given[src] == nullptr || given[wei] == nullptr) return false;
    for (PyObject*& object : given)
        if (object == nullptr) object = Py_None;
    return given[operands] == Py_None;
}

bool Arguments::sort_named(PyObject* name, PyObject* value) {
    // Names in code are interned. Of any other this makes an option, which no known call has.
    const Names& names = parameter_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != name) continue;
        if (given[i] != nullptr) return false;
        given[i] = value;
        return true;
    }
    return options.add(name, value);
}

PyObject* call_operator(PyObject* op, const Arguments& arguments) {
    static PyObject* const only_out = PyTuple_Pack(1, parameter_names()[out]);
    static PyObject* const both =
            PyTuple_Pack(2, parameter_names()[out], parameter_names()[residual]);
    const auto& given = arguments.given;
    PyObject* const names = given[residual] == Py_None ? only_out : both;
    if (names == nullptr) return nullptr;
    // The place before the first is the callee's own, by the protocol.
    std::array<PyObject*, 4> passed{nullptr, given[src], given[out], given[residual]};
    return PyObject_Vectorcall(op, passed.data() + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flagged, PyObject* names) {
    const HotFunction& function = *as_hot(self);
    Arguments arguments;
    if (arguments.sort(args, static_cast<std::size_t>(PyVectorcall_NARGS(flagged)), names)) {
        const auto& given = arguments.given;
        try {
            const auto op = py::reinterpret_steal<py::object>(function.known->find(
                    function.kind, given[wei], given[bias], arguments.options));
            if (op) return call_operator(op.ptr(), arguments);
        } catch (...) {
            set_python_error(std::current_exception());
            return nullptr;
        }
    }
    return PyObject_Vectorcall(function.function, args, flagged, names);
}

// As functions have it: methods of classes that have one as an attribute.
PyObject* bind(PyObject* self, PyObject* object, PyObject* /*type*/) {
    return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* represent(PyObject* self) {
    return PyObject_Repr(as_hot(self)->function);
}

// Pickled by name, as functions are.
PyObject* reduce(PyObject* self, PyObject* /*nothing*/) {
    return PyObject_GetAttrString(self, "__qualname__");
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_hot(self)->function);
    Py_VISIT(as_hot(self)->kind);
    Py_VISIT(as_hot(self)->calls);
    Py_VISIT(as_hot(self)->dict);
    return 0;
}

// Only the dict is in cycles that can be let go here: the rest is needed as long as there are
// calls.
int clear(PyObject* self) {
    Py_CLEAR(as_hot(self)->dict);
    return 0;
}

void dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (as_hot(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
    clear(self);
    Py_CLEAR(as_hot(self)->function);
    Py_CLEAR(as_hot(self)->kind);
    Py_CLEAR(as_hot(self)->calls);
    type->tp_free(self);
    Py_DECREF(type);
}

PyTypeObject* make_type() {
    static PyGetSetDef properties[] = {
            {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr}, {}};
    static PyMethodDef methods[] = {{"__reduce__", &reduce, METH_NOARGS, nullptr}, {}};
    static PyMemberDef members[] = {
            {"__vectorcalloffset__", T_PYSSIZET, offsetof(HotFunction, call), READONLY, nullptr},
            {"__dictoffset__", T_PYSSIZET, offsetof(HotFunction, dict), READONLY, nullptr},
            {"__weaklistoffset__", T_PYSSIZET, offsetof(HotFunction, weak_references), READONLY,
             nullptr},
            {}};
    static PyType_Slot slots[] = {
            {Py_tp_doc, const_cast<char*>("A function whose known calls run without Python.")},
            {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
            {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
            {Py_tp_repr, reinterpret_cast<void*>(&represent)},
            {Py_tp_getset, properties},
            {Py_tp_methods, methods},
            {Py_tp_members, members},
            {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
            {Py_tp_clear, reinterpret_cast<void*>(&clear)},
            {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
            {0, nullptr}};
    static PyType_Spec spec{"pyonednn_q._core.HotFunction", sizeof(HotFunction), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

} // namespace

py::object hot_function(const py::object& function, const py::object& kind,
                        const py::object& calls) {
    static PyTypeObject* const type = make_type();
    if (type == nullptr) throw py::error_already_set();
    auto& known = calls.cast<KnownCalls&>();
    PyObject* const made = type->tp_alloc(type, 0);
    if (made == nullptr) throw py::error_already_set();
    HotFunction& hot = *as_hot(made);
    hot.call = &call;
    hot.function = Py_NewRef(function.ptr());
    hot.kind = Py_NewRef(kind.ptr());
    hot.calls = Py_NewRef(calls.ptr());
    hot.known = &known;
    return py::reinterpret_steal<py::object>(made);
}

} // namespace pq
