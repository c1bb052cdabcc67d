#include "errors.hpp"
#include "gil.hpp"
#include "quantize.hpp"
#include "rooms.hpp"

namespace pq {

namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Points = py::array_t<std::int32_t, py::array::c_style>;

// Arrays lie in memory without gaps: Python has seen to that. What could still be read or written
// out of bounds is checked here.
std::size_t columns_of(const Floats& values, std::size_t rows) {
    const auto count = static_cast<std::size_t>(values.size());
    if (rows == 0 || count % rows != 0) {
        throw ArgumentFault("ShapeError", "rows", std::to_string(rows),
                            "a divisor of " + std::to_string(count));
    }
    return count / rows;
}

void find_ranges(const Floats& values, Floats lo, Floats hi) {
    const auto rows = static_cast<std::size_t>(lo.size());
    const std::size_t columns = columns_of(values, rows);
    if (hi.size() != lo.size())
        throw ArgumentFault("ShapeError", "hi", std::to_string(hi.size()), std::to_string(rows));
    const float* const from = values.data();
    float* const to_lo = lo.mutable_data();
    float* const to_hi = hi.mutable_data();
    const GilReleased released;
    ranges(from, rows, columns, to_lo, to_hi);
}

bool find_codes(const Floats& values, const Floats& scales, const Points& zero_points,
                py::array codes) {
    const auto rows = static_cast<std::size_t>(scales.size());
    const std::size_t columns = columns_of(values, rows);
    const bool fits = zero_points.size() == scales.size() && codes.size() == values.size() &&
                      codes.itemsize() == 1 && (codes.flags() & py::array::c_style) != 0;
    if (!fits) {
        throw ArgumentFault("ShapeError", "codes", std::to_string(codes.size()),
                            std::to_string(values.size()) + " bytes without gaps");
    }
    const bool is_signed = codes.dtype().kind() == 'i';
    const float* const from = values.data();
    const float* const by = scales.data();
    const std::int32_t* const points = zero_points.data();
    void* const to = codes.mutable_data();
    const GilReleased released;
    if (is_signed) return quantize(from, rows, columns, by, points, static_cast<std::int8_t*>(to));
    return quantize(from, rows, columns, by, points, static_cast<std::uint8_t*>(to));
}

} // namespace

void register_quantize(py::module_& m) {
    m.def("ranges", &find_ranges, py::arg("values"), py::arg("lo").noconvert(),
          py::arg("hi").noconvert(), "Writes the ends of every row's range, which holds 0.");
    m.def("quantize", &find_codes, py::arg("values"), py::arg("scales"), py::arg("zero_points"),
          py::arg("codes"), "Writes codes of rows; false if a value is NaN.");
}

} // namespace pq
