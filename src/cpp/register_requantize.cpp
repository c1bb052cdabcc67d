#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "requantize.hpp"
#include "rooms.hpp"

#include <utility>

namespace pq {

namespace {

template <typename T>
std::vector<T> values(const py::array_t<T, py::array::c_style>& array) {
    return {array.data(), array.data() + array.size()};
}

Requantizer make(std::string kind, std::string rounding, std::string dtype, std::int32_t lo,
                 std::int32_t hi, const py::array_t<std::int64_t, py::array::c_style>& multiplier,
                 const py::array_t<double, py::array::c_style>& factor,
                 const py::array_t<std::int32_t, py::array::c_style>& shift,
                 const py::array_t<double, py::array::c_style>& then,
                 const py::array_t<double, py::array::c_style>& last,
                 const py::array_t<std::int32_t, py::array::c_style>& bias,
                 const py::array_t<double, py::array::c_style>& real_bias,
                 const py::array_t<std::int32_t, py::array::c_style>& zero_point) {
    RequantizerSpec spec;
    spec.kind = std::move(kind);
    spec.rounding = std::move(rounding);
    spec.dtype = std::move(dtype);
    spec.lo = lo;
    spec.hi = hi;
    spec.multiplier = values(multiplier);
    spec.factor = values(factor);
    spec.shift = values(shift);
    spec.then = values(then);
    spec.last = values(last);
    spec.bias = values(bias);
    spec.real_bias = values(real_bias);
    spec.zero_point = values(zero_point);
    return Requantizer(std::move(spec));
}

// The arrays lie alike in memory, without gaps: Python has seen to that. What could still be read
// or written out of bounds is checked here.
void run(const Requantizer& self, const py::array& acc, py::array dst, std::size_t outer,
         std::size_t inner) {
    const std::size_t count = outer * self.channels() * inner;
    const py::dtype wanted = numpy_dtype(dtype_from_name(self.dtype()));
    if (!acc.dtype().equal(py::dtype::of<std::int32_t>()) || !dst.dtype().equal(wanted)) {
        throw ArgumentFault("DTypeError", "acc", py::str(acc.dtype()),
                            "int32, and dst of the requantizer's dtype");
    }
    if (static_cast<std::size_t>(acc.size()) != count ||
        static_cast<std::size_t>(dst.size()) != count) {
        throw ArgumentFault("ShapeError", "acc", std::to_string(acc.size()) + " values",
                            std::to_string(count) + " in acc and in dst");
    }
    const auto* const from = static_cast<const std::int32_t*>(acc.data());
    void* const to = dst.mutable_data();
    const GilReleased released;
    self.run(from, to, outer, inner);
}

} // namespace

void register_requantize(py::module_& m) {
    py::class_<Requantizer>(m, "Requantizer", "Integers from s32 accumulators, by given constants.")
            .def(py::init(&make), py::kw_only(), py::arg("kind"), py::arg("rounding"),
                 py::arg("dtype"), py::arg("lo"), py::arg("hi"), py::arg("multiplier"),
                 py::arg("factor"), py::arg("shift"), py::arg("then"), py::arg("last"),
                 py::arg("bias"), py::arg("real_bias"), py::arg("zero_point"))
            .def("run", &run, py::arg("acc"), py::arg("dst"), py::arg("outer"), py::arg("inner"),
                 "Requantizes contiguous memory: outer rows of channels of inner values.");
}

} // namespace pq
