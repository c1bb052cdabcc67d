#include "candidate.hpp"

#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "reorder.hpp"
#include "reserve.hpp"
#include "threads.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace pq {

namespace {

void check_shape(const std::string& name, const py::array& array, const Dims& dims) {
    const Dims shape(array.shape(), array.shape() + array.ndim());
    if (shape != dims) throw ArgumentFault("ShapeError", name, dims_text(shape), dims_text(dims));
}

// Weights of a prelu post-op have no descriptor of their own: f32, one value per selected
// dimension, in the physical order of dst.
Layout prelu_layout(const Layout& dst, int mask) {
    Dims dims = dst.dims();
    for (std::size_t i = 0; i < dims.size(); ++i)
        if ((mask & (1 << i)) == 0) dims[i] = 1;
    std::vector<std::size_t> order(dims.size());
    std::iota(order.begin(), order.end(), 0U);
    if (dst.plain()) {
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return dst.strides()[a] < dst.strides()[b];
        });
    } else {
        std::reverse(order.begin(), order.end());
    }
    Dims strides(dims.size());
    dnnl_dim_t stride = 1;
    for (const std::size_t i : order) {
        strides[i] = stride;
        stride *= dims[i];
    }
    return Layout(TensorSpec{dims, dnnl_f32, strides});
}

} // namespace

Candidate::Candidate(Problem problem, AttrSpec attr)
    : problem_(std::move(problem)), attr_(std::move(attr)), threads_(get_num_threads()) {
    reserve(for_making);
    const Threads held(threads_);
    const Attribute attribute = make_attr(attr_);
    desc_ = make_primitive_desc(problem_, attribute.get());
}

std::string Candidate::impl() const {
    const char* name = nullptr;
    PQ_CALL(primitive_desc_query, desc(), dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
    return name != nullptr ? name : "";
}

bool Candidate::next() {
    const Threads held(threads_);
    const dnnl_status_t status = lib().primitive_desc_next_impl(desc_.get());
    if (status == dnnl_success) return true;
    if (status == dnnl_last_impl_reached || status == dnnl_unimplemented) return false;
    check(status, "dnnl_primitive_desc_next_impl");
    return false;
}

Layout Candidate::layout(const std::string& name) const {
    if (const RuntimeValue* const value = runtime_value(name))
        return Layout::vector(value_count(name, *value), value->dtype);
    for (std::size_t i = 0; i < attr_.post_ops.size(); ++i) {
        const PostOp& op = attr_.post_ops[i];
        if (op.kind == PostOp::Kind::prelu && name == "post_op_" + std::to_string(i)) {
            return prelu_layout(layout("dst"), op.mask);
        }
    }
    const auto asked = problem_.tensors.find(name);
    const const_dnnl_memory_desc_t found =
            lib().primitive_desc_query_md(desc(), dnnl_query_exec_arg_md, argument(name, attr_));
    const bool known = found != nullptr && !Layout(found).dims().empty();
    if (known) return Layout(found);
    if (asked != problem_.tensors.end()) return asked->second;
    throw ArgumentFault("ArgumentError", name, "an argument this implementation does not take",
                        "one that it takes");
}

std::size_t Candidate::scratchpad_bytes() const {
    const const_dnnl_memory_desc_t found =
            lib().primitive_desc_query_md(desc(), dnnl_query_scratchpad_md, 0);
    return found == nullptr ? 0 : lib().memory_desc_get_size(found);
}

py::dict Candidate::attr_readback() const {
    const_dnnl_primitive_attr_t attr = nullptr;
    PQ_CALL(primitive_desc_get_attr, desc(), &attr);
    return pq::attr_readback(attr);
}

namespace {

std::shared_ptr<Memory> packed_from(const Layout& given, const void* data, const Layout& wanted) {
    auto packed = std::make_shared<Memory>(wanted);
    const GilReleased released;
    // A reorder is generated code, milliseconds for every bias; and there is none from 4-bit data
    // to the same layout.
    if (given == wanted) {
        std::memcpy(packed->data(), data, given.nbytes());
    } else {
        // Read only: the const_cast is for an API that takes void * for input and output alike.
        reorder(given, const_cast<void*>(data), *packed);
    }
    return packed;
}

} // namespace

std::shared_ptr<Memory> Candidate::pack(const std::string& name, const py::array& array) const {
    const Layout wanted = layout(name);
    check_shape(name, array, wanted.dims());
    const Layout given = layout_of(name, array, wanted.dtype());
    return packed_from(given, array.data(), wanted);
}

std::shared_ptr<Memory> Candidate::pack_nibbles(const std::string& name,
                                                const py::array& bytes) const {
    const Layout wanted = layout(name);
    if (dtype_bits(wanted.dtype()) != 4) {
        throw ArgumentFault("DTypeError", name, "packed 4-bit data", dtype_name(wanted.dtype()));
    }
    Dims strides(wanted.dims().size(), 1);
    for (std::size_t i = strides.size() - 1; i > 0; --i)
        strides[i - 1] = strides[i] * wanted.dims()[i];
    const Layout given(TensorSpec{wanted.dims(), wanted.dtype(), strides});
    const bool bytes_ok = bytes.dtype().equal(py::dtype::of<std::uint8_t>()) && bytes.ndim() == 1 &&
                          bytes.strides(0) == 1 &&
                          static_cast<std::size_t>(bytes.nbytes()) == given.nbytes();
    if (!bytes_ok) {
        throw ArgumentFault("ShapeError", name, "other bytes",
                            std::to_string(given.nbytes()) +
                                    " contiguous uint8 bytes, two values each");
    }
    return packed_from(given, bytes.data(), wanted);
}

const RuntimeValue* Candidate::runtime_value(const std::string& name) const {
    for (const RuntimeValue& scale : attr_.scales)
        if (name == scale.arg + "_scale") return &scale;
    for (const RuntimeValue& zero_point : attr_.zero_points)
        if (name == zero_point.arg + "_zero_point") return &zero_point;
    return nullptr;
}

dnnl_dim_t Candidate::value_count(const std::string& name, const RuntimeValue& value) const {
    const Dims dims = layout(value.arg).dims();
    const std::size_t ndims = dims.size();
    dnnl_dim_t count = 1;
    for (std::size_t i = 0; i < ndims; ++i) {
        if ((value.mask & (1 << i)) == 0) continue;
        // Groups belong to the last dimensions (K and N of a matmul).
        const std::size_t first = ndims - value.groups.size();
        const dnnl_dim_t group = i >= first ? value.groups[i - first] : 1;
        if (group < 1 || dims[i] % group != 0) {
            throw ArgumentFault("ShapeError", name, "a group of " + std::to_string(group),
                                "a divisor of " + std::to_string(dims[i]));
        }
        count *= dims[i] / group;
    }
    if (value.mask < 0 || (value.mask >> ndims) != 0) {
        throw ArgumentFault("ArgumentError", name, "mask " + std::to_string(value.mask),
                            "bits of " + std::to_string(ndims) + " dimensions only");
    }
    return count;
}

std::shared_ptr<Memory> Candidate::hold(const std::string& name, const py::array& values) const {
    const RuntimeValue* value = runtime_value(name);
    if (value == nullptr) {
        throw ArgumentFault("ArgumentError", name, "values",
                            "nothing: the attributes declare no such scale or "
                            "zero point");
    }
    const dnnl_dim_t count = value_count(name, *value);
    const bool contiguous =
            values.ndim() == 1 && (values.shape(0) < 2 || values.strides(0) == values.itemsize());
    if (!contiguous || values.shape(0) != count) {
        const Dims shape(values.shape(), values.shape() + values.ndim());
        throw ArgumentFault("ShapeError", name, dims_text(shape), dims_text({count}));
    }
    if (!values.dtype().equal(numpy_dtype(value->dtype))) {
        throw ArgumentFault("DTypeError", name, py::str(values.dtype()), dtype_name(value->dtype));
    }
    auto held = std::make_shared<Memory>(Layout::vector(count, value->dtype));
    std::memcpy(held->data(), values.data(), held->layout().nbytes());
    return held;
}

} // namespace pq
