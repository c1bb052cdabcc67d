// Copies between layouts, made by the library: weights when they are packed, arrays of a call that
// lie otherwise than the primitive takes them.
#pragma once

#include "memory.hpp"

namespace pq {

// A copy from one layout into another, the data type included. Safe from many threads at once.
class Reorder {
public:
    Reorder(const Layout& from, const Layout& to);

    // What a call needs besides its two memories.
    const Layout& scratchpad() const { return scratchpad_; }

    // Whether the library has more for it than a plain loop over elements.
    bool generated() const;

    void execute(dnnl_memory_t from, dnnl_memory_t to, dnnl_memory_t scratchpad) const;

private:
    int threads_; // that it is made for and run with
    PrimitiveDesc desc_;
    Primitive primitive_;
    Layout scratchpad_;
};

// Copies src to dst, converting the layout (weights packing) and the data type.
void reorder(const Layout& src_layout, void* src, const Memory& dst);

} // namespace pq
