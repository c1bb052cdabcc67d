// Layouts (oneDNN memory descriptors), owned aligned memory, and the checks an array must pass
// before the library, which checks nothing, gets to see its pointer.
#pragma once

#include "handle.hpp"

#include <memory>

namespace pq {

// The layout of one argument of a primitive: immutable, comparable, possibly opaque (packed
// weights).
class Layout {
public:
    explicit Layout(const_dnnl_memory_desc_t desc);
    explicit Layout(const TensorSpec& spec);

    // A one-dimensional run of `count` values: scales and zero points.
    static Layout vector(dnnl_dim_t count, dnnl_data_type_t dtype);

    const_dnnl_memory_desc_t desc() const { return desc_.get(); }
    dnnl_data_type_t dtype() const { return dtype_; }
    const Dims& dims() const { return dims_; }
    const Dims& strides() const { return strides_; } // empty unless plain()
    bool plain() const { return plain_; }
    std::size_t nbytes() const { return nbytes_; }
    bool operator==(const Layout& other) const;
    std::string text() const;

private:
    void query();

    // Shared, not cloned: layouts are copied into every frame.
    std::shared_ptr<dnnl_memory_desc> desc_;
    dnnl_data_type_t dtype_ = dnnl_data_type_undef;
    Dims dims_, strides_;
    bool plain_ = false;
    std::size_t nbytes_ = 0;
};

// Bytes aligned to a cache line; freed with the object.
class AlignedBuffer {
public:
    explicit AlignedBuffer(std::size_t nbytes);

    void* data() const { return data_.get(); }
    std::size_t nbytes() const { return nbytes_; }

private:
    struct Free {
        void operator()(void* pointer) const noexcept;
    };

    std::unique_ptr<void, Free> data_;
    std::size_t nbytes_;
};

// Memory the extension owns: packed weights, scales, zero points, constant operands.
class Memory {
public:
    explicit Memory(Layout layout);

    const Layout& layout() const { return layout_; }
    void* data() const { return buffer_.data(); }
    dnnl_memory_t object() const { return object_.get(); }

    // A copy as a NumPy array in logical dims; LayoutError when the layout is opaque.
    py::array to_numpy() const;

private:
    Layout layout_;
    AlignedBuffer buffer_;
    MemoryObject object_;
};

MemoryObject make_memory(const Layout& layout, void* data);

// The scratchpad that a primitive works in. Of the primitive itself: one from the library's cache
// is as another descriptor said.
Layout scratchpad_of(const Primitive& primitive);

// The layout of an array as it is, strides included. Throws DTypeError, LayoutError.
Layout layout_of(const std::string& argument, const py::array& array, dnnl_data_type_t dtype);

// Reads (dims, dtype name, strides or None).
TensorSpec tensor_from_python(const py::handle& boundary);

std::string dims_text(const Dims& dims);

// Bytes from the first element to the last, strides in elements of so many bits. Throws LayoutError
// where that is more than memory can have.
std::size_t reach_of(const Dims& dims, const Dims& strides, std::size_t bits);

} // namespace pq
