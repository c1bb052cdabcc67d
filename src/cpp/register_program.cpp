#include "errors.hpp"
#include "program.hpp"
#include "rooms.hpp"

#include <utility>

namespace pq {

namespace {

Place place_from_python(const py::handle& pair) {
    const auto [buffer, offset] = pair.cast<std::pair<std::size_t, std::size_t>>();
    return {buffer, offset};
}

// (what runs, places, residual's place or None, specs of a function's arrays)
Step step_from_python(const py::handle& row) {
    const auto parts = py::cast<py::tuple>(row);
    Step step;
    step.runs = parts[0];
    if (py::isinstance<Prepared>(step.runs)) step.primitive = step.runs.cast<Prepared*>();
    if (py::isinstance<Pass>(step.runs)) step.pass = step.runs.cast<const Pass*>();
    for (const py::handle place : parts[1])
        step.places.push_back(place_from_python(place));
    if (!parts[2].is_none()) step.residual = place_from_python(parts[2]);
    for (const py::handle spec : parts[3])
        step.specs.push_back(tensor_from_python(spec));
    return step;
}

std::unique_ptr<Program> make_program(const py::list& steps, std::size_t arena_bytes,
                                      const py::list& arrays, std::size_t inputs) {
    std::vector<Step> made;
    for (const py::handle step : steps)
        made.push_back(step_from_python(step));
    std::vector<TensorSpec> specs;
    for (const py::handle spec : arrays)
        specs.push_back(tensor_from_python(spec));
    return std::make_unique<Program>(std::move(made), arena_bytes, std::move(specs), inputs);
}

} // namespace

void register_program(py::module_& m) {
    py::class_<Program>(m, "Program", "Primitives and passes in a row over one block of memory.")
            .def(py::init(&make_program), py::arg("steps"), py::arg("arena_bytes"),
                 py::arg("arrays"), py::arg("inputs"))
            .def("run", &Program::run, "f(*inputs) -> outputs, or NotImplemented.")
            .def("run_checked", &Program::run_checked, "The same of inputs checked in full.")
            .def("run_timed", &Program::run_timed, "The same; seconds of each step in its place.")
            .def_property_readonly("arena_bytes", &Program::arena_bytes)
            .def_property_readonly("scratchpad_bytes", &Program::scratchpad_bytes);
}

} // namespace pq
