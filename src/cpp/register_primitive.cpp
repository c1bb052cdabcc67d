#include "errors.hpp"
#include "gil.hpp"
#include "hot_call.hpp"
#include "hot_callable.hpp"
#include "rooms.hpp"
#include "runtime.hpp"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace pq {

namespace {

std::unique_ptr<Candidate> make_candidate(const py::tuple& problem, const py::dict& attr,
                                          std::string text) {
    check_not_forked();
    Problem parsed = problem_from_python(problem, std::move(text));
    AttrSpec attributes = attr_from_python(attr);
    // Creation compiles code, milliseconds of it, and touches nothing of Python. Whoever forks
    // holds the GIL: from here on a child knows that it is one.
    begin_use();
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

CodeSource::Input input_from(const std::string& name) {
    using Input = CodeSource::Input;
    const std::map<std::string, Input> known{{"src", Input::codes},
                                             {"src_scale", Input::scale},
                                             {"src_zero_point", Input::zero_point},
                                             {"acc_map", Input::map},
                                             {"operand", Input::operand}};
    const auto found = known.find(name);
    if (found == known.end())
        throw ArgumentFault("ArgumentError", "inputs", name, "what a source brings along");
    return found->second;
}

// `params`: of a scale and a zero point; or none, and each row's range is found. `is_s8`: of codes,
// which need neither.
CodeSource code_source(const std::vector<std::string>& inputs,
                       std::optional<std::pair<float, std::int32_t>> params, bool is_symmetric,
                       std::int32_t offset, std::size_t rows, std::vector<float> unit, bool is_s8) {
    CodeSource source;
    source.is_s8 = is_s8;
    source.is_dynamic = !is_s8 && !params.has_value();
    source.is_symmetric = is_symmetric;
    source.offset = offset;
    source.rows = rows;
    if (params) std::tie(source.scale, source.zero_point) = *params;
    source.zero_point += offset;
    source.unit = std::move(unit);
    for (const std::string& name : inputs)
        source.inputs.push_back(input_from(name));
    if (rows == 0 || (rows > 1 && !source.is_dynamic))
        throw ArgumentFault("ArgumentError", "rows", std::to_string(rows), "1, or a range each");
    return source;
}

py::object make_hot_call_making_codes(const py::object& prepared,
                                      const std::vector<std::string>& inputs,
                                      std::optional<std::pair<float, std::int32_t>> params,
                                      bool is_symmetric, std::int32_t offset, std::size_t rows,
                                      std::vector<float> unit, bool is_s8) {
    return hot_call_making_codes(prepared, code_source(inputs, params, is_symmetric, offset, rows,
                                                       std::move(unit), is_s8));
}

// None where the primitive reads anything else.
std::optional<std::pair<Pass, std::vector<std::size_t>>>
make_code_pass(const Prepared& prepared, std::size_t count, const std::vector<std::string>& inputs,
               bool is_symmetric, std::int32_t offset, std::size_t rows, std::vector<float> unit) {
    CodeSource source =
            code_source(inputs, std::nullopt, is_symmetric, offset, rows, std::move(unit), false);
    if (!prepared.reads_only(source, true)) return std::nullopt;
    if (count == 0 || count % rows != 0)
        throw ArgumentFault("ArgumentError", "count", std::to_string(count), "whole rows");
    bytes_of_floats("count", 1, count);
    source.is_signed = prepared.takes_signed();
    return code_pass(std::move(source), count);
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
            .def("hot_call_making_codes", &make_hot_call_making_codes, py::kw_only(),
                 py::arg("inputs"), py::arg("params"), py::arg("is_symmetric"), py::arg("offset"),
                 py::arg("rows"), py::arg("unit"), py::arg("is_s8"),
                 "f(src, residual or None, out or None) -> the same, of what codes are made of.")
            .def("code_pass", &make_code_pass, py::arg("count"), py::kw_only(), py::arg("inputs"),
                 py::arg("is_symmetric"), py::arg("offset"), py::arg("rows"), py::arg("unit"),
                 "What makes codes of values by their range, and where each input lies in its dst.")
            .def("time_calls", &Prepared::time_calls, py::arg("arrays"), py::arg("calls"),
                 "Seconds of that many executions in a C++ loop.")
            .def_property_readonly("copied", &Prepared::copied,
                                   "Arguments copied in each call, and into which layouts.")
            .def("time_copies", &Prepared::time_copies, py::arg("calls"),
                 "Seconds of one copy of each of them.")
            .def_property_readonly("scratchpad_bytes", &Prepared::scratchpad_bytes,
                                   "What the primitive itself says that it works in.")
            .def_property_readonly("frames", &Prepared::frames);
}

} // namespace pq
