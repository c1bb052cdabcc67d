#include "cast.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "rooms.hpp"

namespace pq {

namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Halves = py::array_t<std::uint16_t, py::array::c_style>;

Half half_of(const std::string& type) {
    if (type == "bf16") return Half::bf16;
    if (type == "f16") return Half::f16;
    throw ArgumentFault("DTypeError", "type", type, "bf16 or f16");
}

std::size_t count_of(const Floats& values, const Halves& halves) {
    if (values.size() != halves.size()) {
        throw ArgumentFault("ShapeError", "halves", std::to_string(halves.size()),
                            std::to_string(values.size()));
    }
    return static_cast<std::size_t>(values.size());
}

void narrow_array(const std::string& type, const Floats& values, Halves halves) {
    const std::size_t count = count_of(values, halves);
    const float* const from = values.data();
    std::uint16_t* const to = halves.mutable_data();
    const Half half = half_of(type);
    const GilReleased released;
    narrow(half, from, count, to);
}

void widen_array(const std::string& type, const Halves& halves, Floats values) {
    const std::size_t count = count_of(values, halves);
    const std::uint16_t* const from = halves.data();
    float* const to = values.mutable_data();
    const Half half = half_of(type);
    const GilReleased released;
    widen(half, from, count, to);
}

} // namespace

void register_cast(py::module_& m) {
    m.def("narrow", &narrow_array, py::arg("type"), py::arg("values").noconvert(),
          py::arg("halves").noconvert(), "Writes float32 values as bf16 or f16, given as uint16.");
    m.def("widen", &widen_array, py::arg("type"), py::arg("halves").noconvert(),
          py::arg("values").noconvert(), "Writes bf16 or f16, given as uint16, as float32.");
}

} // namespace pq
