#include "array_layout.hpp"

#include "array_flags.hpp"
#include "buffer_pool.hpp"
#include "dtypes.hpp"
#include "errors.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

namespace pq {

bool has_no_gaps(const Layout& layout) {
    const Dims& dims = layout.dims();
    const dnnl_dim_t count =
            std::accumulate(dims.begin(), dims.end(), dnnl_dim_t{1}, std::multiplies<dnnl_dim_t>());
    return layout.plain() &&
           static_cast<std::size_t>(count) * dtype_bits(layout.dtype()) == layout.nbytes() * 8;
}

ArrayLayout::ArrayLayout(std::string argument_name, const Layout& of, bool is_output)
    : name(std::move(argument_name)), layout(of), output(is_output),
      dtype(numpy_dtype(layout.dtype())), has_gaps(!has_no_gaps(layout)) {
    const auto itemsize = dtype.itemsize();
    py::ssize_t reach = itemsize;
    bool is_empty = false;
    for (std::size_t i = 0; i < layout.dims().size(); ++i) {
        strides_bytes.push_back(layout.strides()[i] * itemsize);
        reach += (layout.dims()[i] - 1) * strides_bytes.back();
        is_empty = is_empty || layout.dims()[i] == 0;
    }
    extent = is_empty ? 0 : static_cast<std::size_t>(reach);
}

bool ArrayLayout::is_row_major() const {
    const Dims& dims = layout.dims();
    py::ssize_t step = dtype.itemsize();
    for (std::size_t i = dims.size(); i-- > 0; step *= dims[i])
        if (dims[i] > 1 && strides_bytes[i] != step) return false;
    return true;
}

bool ArrayLayout::fits(PyObject* object, bool is_written) const {
    return fits_as(object, dtype, 1,
                   array_flags::aligned | (is_written ? array_flags::writeable : 0));
}

bool ArrayLayout::fits_codes_of(PyObject* object, bool is_s8) const {
    // These outlive the interpreter.
    static const auto& floats = *new py::dtype(py::dtype::of<float>());
    static const auto& codes = *new py::dtype(py::dtype::of<std::int8_t>());
    if (has_gaps || dtype.itemsize() != 1) return false;
    return is_s8 ? fits_as(object, codes, 1, array_flags::aligned)
                 : fits_as(object, floats, sizeof(float), array_flags::aligned);
}

bool ArrayLayout::fits_as(PyObject* object, const py::dtype& wanted, py::ssize_t times,
                          int flags) const {
    const auto& numpy = py::detail::npy_api::get();
    if (Py_TYPE(object) != numpy.PyArray_Type_) return false;
    const py::detail::PyArray_Proxy* const array = py::detail::array_proxy(object);
    const Dims& dims = layout.dims();
    if (array->descr != wanted.ptr() || static_cast<std::size_t>(array->nd) != dims.size() ||
        (array->flags & flags) != flags) {
        return false;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (array->dimensions[i] != dims[i]) return false;
        if (dims[i] > 1 && array->strides[i] != strides_bytes[i] * times) return false;
    }
    return true;
}

void* ArrayLayout::checked_data(const py::handle& object) const {
    if (!py::isinstance<py::array>(object)) {
        throw ArgumentFault("ArgumentError", name, py::str(py::type::of(object)), "a NumPy array");
    }
    const bool is_exact = Py_TYPE(object.ptr()) == py::detail::npy_api::get().PyArray_Type_;
    if (!is_exact && py::isinstance(object, py::module_::import("numpy.ma").attr("MaskedArray"))) {
        throw ArgumentFault("ArgumentError", name, "a masked array",
                            "an array without mask, for example array.filled(0)");
    }
    const auto array = py::reinterpret_borrow<py::array>(object);
    const py::dtype given = array.dtype();
    if (!given.is(dtype) && !given.equal(dtype)) {
        throw ArgumentFault("DTypeError", name, py::str(given), std::string(py::str(dtype)));
    }
    const Dims& dims = layout.dims();
    const auto ndims = static_cast<std::size_t>(array.ndim());
    if (ndims != dims.size() || !std::equal(dims.begin(), dims.end(), array.shape())) {
        throw ArgumentFault("ShapeError", name,
                            dims_text(Dims(array.shape(), array.shape() + ndims)), dims_text(dims));
    }
    for (std::size_t i = 0; i < ndims; ++i) {
        if (dims[i] > 1 && array.strides(static_cast<py::ssize_t>(i)) != strides_bytes[i]) {
            throw ArgumentFault(
                    "LayoutError", name,
                    "strides of " + dims_text(Dims(array.strides(), array.strides() + ndims)) +
                            " bytes",
                    dims_text(Dims(strides_bytes.begin(), strides_bytes.end())) + " bytes");
        }
    }
    if (output && !array.writeable()) {
        throw ArgumentFault("ArgumentError", name, "a read-only array", "a writeable one");
    }
    void* data = const_cast<void*>(array.data());
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto itemsize = static_cast<std::uintptr_t>(dtype.itemsize());
    if (address % itemsize != 0) {
        throw ArgumentFault("LayoutError", name, "an address that is no multiple of the item size",
                            "one that is a multiple of " + std::to_string(itemsize));
    }
    return data;
}

py::object ArrayLayout::empty() const {
    AlignedBuffer buffer = buffer_pool().take(extent);
    void* const data = buffer.data();
    const py::capsule owner = owner_of(std::move(buffer));
    const auto& numpy = py::detail::npy_api::get();
    static_assert(sizeof(Py_intptr_t) == sizeof(dnnl_dim_t));
    const Dims& dims = layout.dims();
    PyObject* const made = numpy.PyArray_NewFromDescr_(
            numpy.PyArray_Type_, py::object(dtype).release().ptr(), static_cast<int>(dims.size()),
            reinterpret_cast<const Py_intptr_t*>(dims.data()),
            reinterpret_cast<const Py_intptr_t*>(strides_bytes.data()), data,
            array_flags::aligned | array_flags::writeable, nullptr);
    if (made == nullptr) throw py::error_already_set();
    auto array = py::reinterpret_steal<py::object>(made);
    if (numpy.PyArray_SetBaseObject_(made, py::object(owner).release().ptr()) != 0)
        throw py::error_already_set();
    return array;
}

} // namespace pq
