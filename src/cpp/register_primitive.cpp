#include "gil.hpp"
#include "hot_call.hpp"
#include "hot_callable.hpp"
#include "rooms.hpp"
#include "runtime.hpp"

namespace pq {

namespace {

std::unique_ptr<Candidate> make_candidate(const py::tuple& problem, const py::dict& attr,
                                          std::string text) {
    check_not_forked();
    Problem parsed = problem_from_python(problem, std::move(text));
    AttrSpec attributes = attr_from_python(attr);
    // Creation compiles code, milliseconds of it, and touches nothing of Python.
    const GilReleased released;
    return std::make_unique<Candidate>(std::move(parsed), std::move(attributes));
}

std::unique_ptr<Prepared> make_prepared(const Candidate& candidate,
                                        const std::vector<std::string>& per_call,
                                        Prepared::Bound bound, const py::dict& arrays) {
    Arrays specs;
    for (const auto& [name, spec] : arrays)
        specs.emplace(name.cast<std::string>(), tensor_from_python(spec));
    return std::make_unique<Prepared>(candidate, per_call, std::move(bound), specs);
}

bool next_without_gil(Candidate& self) {
    const GilReleased released;
    return self.next();
}

} // namespace

void register_primitive(py::module_& m) {
    py::class_<Candidate>(m, "Candidate", "One implementation for a problem; next() moves on.")
            .def(py::init(&make_candidate), py::arg("problem"), py::arg("attr"),
                 py::arg("text") = "")
            .def_property_readonly("impl", &Candidate::impl)
            .def("next", &next_without_gil)
            .def("layout", &Candidate::layout, py::arg("name"))
            .def_property_readonly("scratchpad_bytes", &Candidate::scratchpad_bytes)
            .def("attr_readback", &Candidate::attr_readback)
            .def("pack", &Candidate::pack, py::arg("name"), py::arg("array"))
            .def("pack_nibbles", &Candidate::pack_nibbles, py::arg("name"), py::arg("data"))
            .def("hold", &Candidate::hold, py::arg("name"), py::arg("values"));

    m.attr("HotCallable") = hot_callable();

    py::class_<Prepared>(m, "Prepared", "A primitive ready to run, safe from many threads at once.")
            .def(py::init(&make_prepared), py::arg("candidate"), py::arg("per_call"),
                 py::arg("bound"), py::arg("arrays") = py::dict())
            .def("run", &Prepared::run, "Checks the arrays, executes into the last one, waits.")
            .def_property_readonly("hot_call", &hot_call,
                                   "f(*inputs, None, out or None) -> dst, or NotImplemented.")
            .def_property_readonly("hot_call_with_residual", &hot_call_with_residual,
                                   "f(*inputs, residual or None, out or None) -> the same.")
            .def("time_calls", &Prepared::time_calls, py::arg("arrays"), py::arg("calls"),
                 "Seconds of that many executions in a C++ loop.")
            .def_property_readonly("copied", &Prepared::copied,
                                   "Arguments copied in each call, and into which layouts.")
            .def("time_copies", &Prepared::time_copies, py::arg("calls"),
                 "Seconds of one copy of each of them.")
            .def_property_readonly("frames", &Prepared::frames);
}

} // namespace pq
