// Owning handles of oneDNN's C objects.
#pragma once

#include "library.hpp"

#include <memory>
#include <type_traits>

namespace pq {

// One deleter per C type; unique_ptr gives move-only ownership without further code.
template <typename Object, dnnl_status_t (*Library::*Destroy)(Object)>
struct Deleter {
    void operator()(Object object) const noexcept { (lib().*Destroy)(object); }
};

template <typename Object, dnnl_status_t (*Library::*Destroy)(Object)>
using Handle = std::unique_ptr<std::remove_pointer_t<Object>, Deleter<Object, Destroy>>;

using Attribute = Handle<dnnl_primitive_attr_t, &Library::primitive_attr_destroy>;
using PostOps = Handle<dnnl_post_ops_t, &Library::post_ops_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, &Library::primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive_t, &Library::primitive_destroy>;
using MemoryObject = Handle<dnnl_memory_t, &Library::memory_destroy>;
using Stream = Handle<dnnl_stream_t, &Library::stream_destroy>;

} // namespace pq
