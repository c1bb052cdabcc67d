#include "memory.hpp"

#include "dtypes.hpp"
#include "errors.hpp"
#include "runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pq {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20U;

std::shared_ptr<dnnl_memory_desc> share(dnnl_memory_desc_t desc) {
    return {desc, [](dnnl_memory_desc_t owned) { lib().memory_desc_destroy(owned); }};
}

// dnnl_memory_desc_query fails with invalid_arguments on opaque layouts, which is an answer here.
template <typename Value>
bool ask(const_dnnl_memory_desc_t desc, dnnl_query_t what, Value& value) {
    return lib().memory_desc_query(desc, what, &value) == dnnl_success;
}

dnnl_memory_desc_t create_desc(const TensorSpec& spec) {
    dnnl_memory_desc_t created = nullptr;
    const auto ndims = static_cast<int>(spec.dims.size());
    if (ndims < 1 || ndims > DNNL_MAX_NDIMS) {
        throw ArgumentFault("ShapeError", "dims", dims_text(spec.dims), "1 to 12 dimensions");
    }
    if (!spec.strides) {
        PQ_CALL(memory_desc_create_with_tag, &created, ndims, spec.dims.data(), spec.dtype,
                dnnl_format_tag_any);
    } else {
        if (spec.strides->size() != spec.dims.size()) {
            throw ArgumentFault("LayoutError", "strides", dims_text(*spec.strides),
                                "one stride per dimension");
        }
        const auto status = lib().memory_desc_create_with_strides(&created, ndims, spec.dims.data(),
                                                                  spec.dtype, spec.strides->data());
        const bool is_nibbles = spec.dtype == dnnl_s4 || spec.dtype == dnnl_u4;
        if (is_nibbles && status == dnnl_invalid_arguments) {
            throw ArgumentFault(
                    "LayoutError", "strides",
                    dims_text(*spec.strides) + " of 4-bit values " + dims_text(spec.dims),
                    "rows that begin at a whole byte: an even number of values in each, "
                    "the last one filled up if need be");
        }
        check(status, "dnnl_memory_desc_create_with_strides");
    }
    return created;
}

} // namespace

std::string dims_text(const Dims& dims) {
    std::string text = "(";
    for (std::size_t i = 0; i < dims.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
    return text + (dims.size() == 1 ? ",)" : ")");
}

std::size_t reach_of(const Dims& dims, const Dims& strides, std::size_t bits) {
    dnnl_dim_t last = 1, part = 0;
    bool is_sound = dims.size() == strides.size();
    for (std::size_t i = 0; i < dims.size() && is_sound; ++i) {
        if (dims[i] == 0) return 0;
        is_sound = dims[i] > 0 && strides[i] >= 0 &&
                   !__builtin_mul_overflow(dims[i] - 1, strides[i], &part) &&
                   !__builtin_add_overflow(last, part, &last);
    }
    is_sound = is_sound && !__builtin_mul_overflow(last, static_cast<dnnl_dim_t>(bits), &part);
    if (!is_sound) {
        throw ArgumentFault("LayoutError", "strides",
                            dims_text(strides) + " of dims " + dims_text(dims),
                            "one for each, none negative, and all within memory");
    }
    return static_cast<std::size_t>((part + 7) / 8);
}

TensorSpec tensor_from_python(const py::handle& boundary) {
    const auto row = py::cast<py::tuple>(boundary);
    TensorSpec spec;
    spec.dims = row[0].cast<Dims>();
    spec.dtype = dtype_from_name(row[1].cast<std::string>());
    if (!row[2].is_none()) spec.strides = row[2].cast<Dims>();
    return spec;
}

Layout::Layout(const_dnnl_memory_desc_t desc) {
    dnnl_memory_desc_t cloned = nullptr;
    PQ_CALL(memory_desc_clone, &cloned, desc);
    desc_ = share(cloned);
    query();
}

Layout::Layout(const TensorSpec& spec) : desc_(share(create_desc(spec))) {
    query();
}

Layout Layout::vector(dnnl_dim_t count, dnnl_data_type_t dtype) {
    return Layout(TensorSpec{{count}, dtype, Dims{1}});
}

void Layout::query() {
    int ndims = 0;
    ask(desc(), dnnl_query_ndims_s32, ndims);
    const dnnl_dims_t* dims = nullptr;
    if (ndims > 0 && ask(desc(), dnnl_query_dims, dims)) dims_.assign(*dims, *dims + ndims);
    ask(desc(), dnnl_query_data_type, dtype_);
    nbytes_ = lib().memory_desc_get_size(desc());

    // Plain: strides only, no inner blocks, nothing appended (compensation) and no padding.
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    int inner_blocks = 1;
    const dnnl_dims_t* strides = nullptr;
    const bool strided = ask(desc(), dnnl_query_format_kind, kind) && kind == dnnl_blocked &&
                         ask(desc(), dnnl_query_inner_nblks_s32, inner_blocks) &&
                         inner_blocks == 0 && ask(desc(), dnnl_query_strides, strides);
    if (!strided || ndims == 0) return;
    strides_.assign(*strides, *strides + ndims);
    dnnl_memory_desc_t rebuilt = nullptr;
    if (lib().memory_desc_create_with_strides(&rebuilt, ndims, dims_.data(), dtype_,
                                              strides_.data()) == dnnl_success) {
        const std::shared_ptr<dnnl_memory_desc> owner = share(rebuilt);
        plain_ = lib().memory_desc_equal(owner.get(), desc()) != 0;
    }
    if (!plain_) strides_.clear();
}

bool Layout::operator==(const Layout& other) const {
    return lib().memory_desc_equal(desc(), other.desc()) != 0;
}

std::string Layout::text() const {
    std::string text = std::string(dtype_name(dtype_)) + dims_text(dims_);
    return text + (plain_ ? " strides " + dims_text(strides_)
                          : " packed, " + std::to_string(nbytes_) + " bytes");
}

AlignedBuffer::AlignedBuffer(std::size_t nbytes) : nbytes_(nbytes) {
    const std::size_t rounded =
            std::max(cache_line, (nbytes + cache_line - 1) / cache_line * cache_line);
    if (rounded < nbytes) throw std::bad_alloc();
    const bool is_large = rounded >= 2 * huge_page;
    data_.reset(std::aligned_alloc(is_large ? huge_page : cache_line, rounded));
    if (!data_) throw std::bad_alloc();
#if defined(__linux__)
    // Weights that come from memory are read a fifth faster.
    if (is_large) madvise(data_.get(), rounded, MADV_HUGEPAGE);
#endif
}

void AlignedBuffer::Free::operator()(void* pointer) const noexcept {
    std::free(pointer);
}

Memory::Memory(Layout layout)
    : layout_(std::move(layout)), buffer_(layout_.nbytes()),
      object_(make_memory(layout_, buffer_.data())) {
    // Padding of packed layouts must not hold whatever the heap held before.
    std::memset(buffer_.data(), 0, buffer_.nbytes());
}

py::array Memory::to_numpy() const {
    if (!layout_.plain()) {
        throw ArgumentFault("LayoutError", "memory", layout_.text(), "a layout with plain strides");
    }
    const py::dtype dtype = numpy_dtype(layout_.dtype());
    std::vector<py::ssize_t> shape(layout_.dims().begin(), layout_.dims().end());
    std::vector<py::ssize_t> strides;
    for (const dnnl_dim_t stride : layout_.strides())
        strides.push_back(stride * dtype.itemsize());
    // Without a base object py::array copies.
    return py::array(dtype, shape, strides, data());
}

MemoryObject make_memory(const Layout& layout, void* data) {
    dnnl_memory_t created = nullptr;
    PQ_CALL(memory_create, &created, layout.desc(), engine(), data);
    return MemoryObject(created);
}

Layout scratchpad_of(const Primitive& primitive) {
    const_dnnl_primitive_desc_t desc = nullptr;
    PQ_CALL(primitive_get_primitive_desc, primitive.get(), &desc);
    return Layout(lib().primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
}

Layout layout_of(const std::string& argument, const py::array& array, dnnl_data_type_t dtype) {
    const py::dtype wanted = numpy_dtype(dtype);
    if (!array.dtype().equal(wanted)) {
        throw ArgumentFault("DTypeError", argument, py::str(array.dtype()),
                            std::string(py::str(wanted)));
    }
    TensorSpec spec;
    spec.dtype = dtype;
    spec.dims.assign(array.shape(), array.shape() + array.ndim());
    Dims strides;
    for (py::ssize_t i = 0; i < array.ndim(); ++i) {
        const py::ssize_t bytes = array.strides(i);
        if (bytes < 0 || bytes % array.itemsize() != 0) {
            throw ArgumentFault("LayoutError", argument,
                                "a stride of " + std::to_string(bytes) + " bytes",
                                "non-negative strides that are multiples of the item size");
        }
        strides.push_back(bytes / array.itemsize());
    }
    spec.strides = std::move(strides);
    return Layout(spec);
}

} // namespace pq
