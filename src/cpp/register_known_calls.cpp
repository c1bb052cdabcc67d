#include "errors.hpp"
#include "fast_function.hpp"
#include "hot_function.hpp"
#include "known_calls.hpp"
#include "rooms.hpp"

namespace pq {

namespace {

PyObject* find(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "find takes a kind, weights, a bias and options");
        return nullptr;
    }
    try {
        Options options;
        if (!PyDict_CheckExact(args[3]) || !options.add_all(args[3])) Py_RETURN_NONE;
        PyObject* const found =
                self_of<KnownCalls>(capsule).find(args[0], args[1], args[2], options);
        if (found == nullptr) Py_RETURN_NONE;
        return found;
    } catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyMethodDef definition{"find", as_definition(&find), METH_FASTCALL, nullptr};

} // namespace

void register_known_calls(py::module_& m) {
    py::class_<KnownCalls>(m, "KnownCalls", "Operators by the calls that they were made for.")
            .def(py::init<>())
            .def_property_readonly(
                    "find",
                    [](const py::object& self) {
                        return fast_function(definition, &self.cast<KnownCalls&>(), self);
                    },
                    "f(kind, wei, bias or None, options) -> operator or None.")
            .def("find_as", &KnownCalls::find_as, py::arg("kind"), py::arg("wei"), py::arg("bias"),
                 py::arg("known"), py::arg("options"))
            .def("remember", &KnownCalls::remember, py::arg("kind"), py::arg("wei"),
                 py::arg("bias"), py::arg("options"), py::arg("op"), py::arg("kept_wei"),
                 py::arg("kept_bias"))
            .def("by_age", &KnownCalls::by_age, "Operators, those used longest ago first.")
            .def("forget", &KnownCalls::forget, "Forget the calls.")
            .def("clear", &KnownCalls::clear, "Forget the calls, and how many were found.")
            .def_property_readonly("hits", &KnownCalls::hits)
            .def_property_readonly("compared", &KnownCalls::compared,
                                   "Bytes of weights and biases that were compared.")
            .def("__len__", &KnownCalls::size);
    m.def("hot_function", &hot_function, py::arg("function"), py::arg("kind"), py::arg("calls"),
          "A function that runs known calls without a frame of Python.");
}

} // namespace pq
