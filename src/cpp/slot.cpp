#include "slot.hpp"

#include "array_flags.hpp"
#include "dtypes.hpp"
#include "errors.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace pq {

namespace {

Layout outer_layout(const Layout& inner, const std::string& name, const Arrays& arrays) {
    const auto found = arrays.find(name);
    Layout layout = found == arrays.end() ? inner : Layout(found->second);
    if (!layout.plain()) {
        throw ArgumentFault("LayoutError", name, layout.text(),
                            "a plain layout for an argument of each call");
    }
    if (layout.dtype() != inner.dtype()) {
        throw ArgumentFault("DTypeError", name, dtype_name(layout.dtype()),
                            dtype_name(inner.dtype()));
    }
    return layout;
}

bool has_no_gaps(const Layout& layout) {
    const Dims& dims = layout.dims();
    const dnnl_dim_t count =
            std::accumulate(dims.begin(), dims.end(), dnnl_dim_t{1}, std::multiplies<dnnl_dim_t>());
    return layout.plain() &&
           static_cast<std::size_t>(count) * dtype_bits(layout.dtype()) == layout.nbytes() * 8;
}

// The same places in memory: strides of dimensions of 1 may be anything. Or other dims over the
// same bytes; that elements lie in the same order there is the caller's to know.
bool is_view(const Layout& layout, const Layout& inner) {
    const Dims& dims = layout.dims();
    if (dims != inner.dims()) {
        return layout.nbytes() == inner.nbytes() && has_no_gaps(layout) && has_no_gaps(inner);
    }
    if (!inner.plain()) return false;
    for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] > 1 && layout.strides()[i] != inner.strides()[i]) return false;
    return true;
}

// The part of inner that holds the elements of layout.
Layout corner_of(const std::string& name, const Layout& layout, const Layout& inner) {
    const Dims& dims = layout.dims();
    if (dims == inner.dims()) return inner;
    const bool contained = inner.plain() && dims.size() == inner.dims().size() &&
                           std::equal(dims.begin(), dims.end(), inner.dims().begin(),
                                      [](dnnl_dim_t a, dnnl_dim_t b) { return a <= b; });
    if (!contained) {
        throw ArgumentFault("ShapeError", name, dims_text(dims),
                            dims_text(inner.dims()) + ", or no longer in any dimension");
    }
    return Layout(TensorSpec{dims, inner.dtype(), inner.strides()});
}

Layout as_bf16(const Layout& layout) {
    return Layout(TensorSpec{layout.dims(), dnnl_bf16, layout.strides()});
}

Layout as_bytes(const Layout& layout) {
    Dims dims = layout.dims(), strides = layout.strides();
    for (dnnl_dim_t& stride : strides)
        stride *= 2;
    dims.push_back(2);
    strides.push_back(1);
    return Layout(TensorSpec{dims, dnnl_s8, strides});
}

} // namespace

Slot::Slot(const Candidate& candidate, const std::string& slot_name, const Arrays& arrays,
           bool is_read)
    : name(slot_name), argument(pq::argument(slot_name, candidate.attr())),
      inner(candidate.layout(slot_name)), layout(outer_layout(inner, slot_name, arrays)),
      output(slot_name == "dst"), dtype(numpy_dtype(layout.dtype())), outside(layout),
      corner(inner) {
    const auto itemsize = dtype.itemsize();
    extent = static_cast<std::size_t>(itemsize);
    for (std::size_t i = 0; i < layout.dims().size(); ++i) {
        const py::ssize_t bytes = layout.strides()[i] * itemsize;
        strides_bytes.push_back(bytes);
        extent += static_cast<std::size_t>((layout.dims()[i] - 1) * bytes);
    }
    has_gaps = !has_no_gaps(layout);
    if (is_view(layout, inner)) return;
    corner = corner_of(name, layout, inner);
    // Where the CPU has no instructions for a 16-bit type, the library computes its elements one by
    // one, a hundred times slower, and bf16's subnormals and f16's NaNs do not stay what they are.
    if (dtype_bits(layout.dtype()) == 16 && corner.plain()) {
        const bool moves = Reorder(as_bf16(layout), as_bf16(corner)).generated();
        outside = moves ? as_bf16(layout) : as_bytes(layout);
        corner = moves ? as_bf16(corner) : as_bytes(corner);
    }
    if (is_read) in = std::make_shared<Reorder>(outside, corner);
    if (output) out = std::make_shared<Reorder>(corner, outside);
}

bool Slot::is_row_major() const {
    const Dims& dims = layout.dims();
    py::ssize_t step = dtype.itemsize();
    for (std::size_t i = dims.size(); i-- > 0; step *= dims[i])
        if (dims[i] > 1 && strides_bytes[i] != step) return false;
    return true;
}

bool Slot::fits(PyObject* object, bool is_written) const {
    return fits_as(object, dtype, 1,
                   array_flags::aligned | (is_written ? array_flags::writeable : 0));
}

bool Slot::fits_codes_of(PyObject* object) const {
    static const auto& floats = *new py::dtype(py::dtype::of<float>()); // outlives the interpreter
    return !has_gaps && dtype.itemsize() == 1 &&
           fits_as(object, floats, sizeof(float), array_flags::aligned);
}

bool Slot::fits_as(PyObject* object, const py::dtype& wanted, py::ssize_t times, int flags) const {
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

void* Slot::checked_data(const py::handle& object) const {
    if (!py::isinstance<py::array>(object)) {
        throw ArgumentFault("ArgumentError", name, py::str(py::type::of(object)), "a NumPy array");
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

} // namespace pq
