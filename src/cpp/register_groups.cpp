#include "array_flags.hpp"
#include "buffer_pool.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "grouped_weights.hpp"
#include "pass.hpp"
#include "rooms.hpp"

#include <memory>
#include <string>
#include <utility>

namespace pq {

namespace {

using Bytes = py::array_t<std::uint8_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style>;
using Wholes = py::array_t<std::int32_t, py::array::c_style>;
using Weights = std::shared_ptr<GroupedWeights>;

std::size_t size_of(const py::array& array) {
    return static_cast<std::size_t>(array.size());
}

void check_size(const char* argument, const py::array& array, std::size_t wanted) {
    if (size_of(array) != wanted) {
        throw ArgumentFault("ShapeError", argument, std::to_string(array.size()),
                            std::to_string(wanted) + " values");
    }
}

Weights make(const Bytes& codes, const Floats& scales, const Bytes& points, const Floats& bias,
             std::size_t group, bool are_nibbles, bool keeps_sums) {
    if (codes.ndim() != 2 || codes.size() == 0)
        throw ArgumentFault("ShapeError", "codes", std::to_string(codes.size()), "a matrix");
    const GroupedWeights::Shape shape{static_cast<std::size_t>(codes.shape(0)),
                                      static_cast<std::size_t>(codes.shape(1)), group};
    if (group == 0 || shape.inner % group != 0) {
        throw ArgumentFault("ShapeError", "group", std::to_string(group),
                            "a divisor of " + std::to_string(shape.inner));
    }
    check_size("scales", scales, shape.columns * shape.groups());
    check_size("points", points, shape.columns * shape.groups());
    if (bias.size() != 0) check_size("bias", bias, shape.columns);
    std::vector<float> added(bias.data(), bias.data() + bias.size());
    const std::uint8_t* const from = codes.data();
    const float* const by = scales.data();
    const std::uint8_t* const of = points.data();
    const GilReleased released;
    return std::make_shared<GroupedWeights>(shape, from, by, of, std::move(added), are_nibbles,
                                            keeps_sums);
}

Bytes unpack(const GroupedWeights& self) {
    Bytes codes(std::vector<std::size_t>{self.shape().columns, self.shape().inner});
    std::uint8_t* const to = codes.mutable_data();
    const GilReleased released;
    self.unpack(to);
    return codes;
}

std::size_t rows_of(const GroupedWeights& self, const py::array& src, const py::array& dst) {
    const std::size_t rows = size_of(src) / self.shape().inner;
    check_size("src", src, rows * self.shape().inner);
    check_size("dst", dst, rows * self.shape().columns);
    return rows;
}

void run(const GroupedWeights& self, const Floats& src, Floats dst, bool is_symmetric,
         bool is_by_group) {
    const std::size_t rows = rows_of(self, src, dst);
    const float* const from = src.data();
    float* const to = dst.mutable_data();
    const GilReleased released;
    self.multiply(from, rows, {is_symmetric, is_by_group}, to);
}

void run_codes(const GroupedWeights& self, const py::array& codes, const Floats& scales,
               const Wholes& zero_points, Floats dst) {
    const std::size_t rows = rows_of(self, codes, dst);
    if (codes.itemsize() != 1 || (codes.flags() & py::array::c_style) == 0)
        throw ArgumentFault("DTypeError", "codes", py::str(codes.dtype()), "bytes without gaps");
    if (rows == 0) return;
    const std::size_t parts = size_of(scales) / rows;
    if (parts != 1 && parts != self.shape().groups())
        throw ArgumentFault("ShapeError", "scales", std::to_string(parts), "one a row or a group");
    check_size("scales", scales, rows * parts);
    check_size("zero_points", zero_points, rows * parts);
    const GivenRows src{rows,          codes.data(),       codes.dtype().kind() == 'i',
                        scales.data(), zero_points.data(), parts};
    float* const to = dst.mutable_data();
    const GilReleased released;
    self.multiply(src, to);
}

// Rows of float32 without gaps, as many as there are, in so many dimensions; 0: any.
bool are_rows(PyObject* object, py::ssize_t inner, int ndim) {
    const auto& numpy = py::detail::npy_api::get();
    static const auto& floats = *new py::dtype(py::dtype::of<float>()); // outlives the interpreter
    if (Py_TYPE(object) != numpy.PyArray_Type_) return false;
    const py::detail::PyArray_Proxy* const array = py::detail::array_proxy(object);
    constexpr int wanted = array_flags::aligned | py::array::c_style;
    return array->descr == floats.ptr() && (ndim == 0 ? array->nd >= 2 : array->nd == ndim) &&
           (array->flags & wanted) == wanted && array->dimensions[array->nd - 1] == inner;
}

// f(src, residual, out): what a call is without a frame of Python.
py::object hot_call(const Weights& self, bool is_symmetric, bool is_by_group, int ndim) {
    const auto inner = static_cast<py::ssize_t>(self->shape().inner);
    const auto columns = static_cast<py::ssize_t>(self->shape().columns);
    const auto call = [=](const py::handle& src, const py::handle& residual,
                          const py::handle& out) -> py::object {
        if (!residual.is_none() || !out.is_none() || !are_rows(src.ptr(), inner, ndim))
            return py::reinterpret_borrow<py::object>(Py_NotImplemented);
        const auto* const array = py::detail::array_proxy(src.ptr());
        std::vector<py::ssize_t> dims(array->dimensions, array->dimensions + array->nd);
        dims.back() = columns;
        std::size_t rows = 1;
        for (std::size_t i = 0; i + 1 < dims.size(); ++i)
            rows *= static_cast<std::size_t>(dims[i]);
        if (rows == 0) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
        AlignedBuffer buffer =
                buffer_pool().take(rows * static_cast<std::size_t>(columns) * sizeof(float));
        auto* const to = static_cast<float*>(buffer.data());
        py::array_t<float> dst(dims, to, owner_of(std::move(buffer)));
        const auto* const from = reinterpret_cast<const float*>(array->data);
        {
            const GilReleased released;
            self->multiply(from, rows, {is_symmetric, is_by_group}, to);
        }
        return dst;
    };
    return py::cpp_function(call);
}

Pass grouped_pass(const Weights& weights, std::size_t rows, bool is_symmetric, bool is_by_group) {
    const auto& shape = weights->shape();
    Pass pass;
    pass.tensors = {{bytes_of_floats("rows", rows, shape.inner), sizeof(float)},
                    {bytes_of_floats("rows", rows, shape.columns), sizeof(float)}};
    pass.run = [=](char* const* tensors) {
        weights->multiply(reinterpret_cast<const float*>(tensors[0]), rows,
                          {is_symmetric, is_by_group}, reinterpret_cast<float*>(tensors[1]));
    };
    return pass;
}

} // namespace

void register_groups(py::module_& m) {
    py::class_<GroupedWeights, Weights>(m, "GroupedWeights",
                                        "Weights in groups, packed, and products with them.")
            .def(py::init(&make), py::kw_only(), py::arg("codes").noconvert(),
                 py::arg("scales").noconvert(), py::arg("points").noconvert(),
                 py::arg("bias").noconvert(), py::arg("group"), py::arg("are_nibbles"),
                 py::arg("keeps_sums"))
            .def_property_readonly("nbytes", &GroupedWeights::nbytes)
            .def("codes", &unpack, "The codes that it was made of.")
            .def("run", &run, py::arg("src").noconvert(), py::arg("dst").noconvert(), py::kw_only(),
                 py::arg("is_symmetric"), py::arg("is_by_group"),
                 "Writes products of float32 rows, as codes by their ranges.")
            .def("run_codes", &run_codes, py::arg("codes"), py::arg("scales").noconvert(),
                 py::arg("zero_points").noconvert(), py::arg("dst").noconvert(),
                 "Writes products of rows of codes.")
            .def("hot_call", &hot_call, py::kw_only(), py::arg("is_symmetric"),
                 py::arg("is_by_group"), py::arg("ndim"),
                 "f(src, residual, out) -> dst or NotImplemented.");
    m.def("grouped_pass", &grouped_pass, py::arg("weights"), py::arg("rows"),
          py::arg("is_symmetric"), py::arg("is_by_group"),
          "Products of float32 rows with weights in groups.");
}

} // namespace pq
