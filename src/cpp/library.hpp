// The oneDNN library as a table of C functions, resolved at run time.
//
// The extension does not link libdnnl. It opens the file it is given and looks up exactly the
// functions below, so that building needs headers only, one build runs on every v3 from the floor
// on, and nothing can bind to (or be bound by) another copy of oneDNN in the process, such as the
// one inside PyTorch.
#pragma once

#include "common.hpp"

namespace pq {

// Every function here exists in oneDNN 3.7. Anything newer would have to be optional.
#define PQ_DNNL_FUNCTIONS(X)                                                                       \
    X(version)                                                                                     \
    X(set_max_cpu_isa)                                                                             \
    X(get_effective_cpu_isa)                                                                       \
    X(set_primitive_cache_capacity)                                                                \
    X(get_primitive_cache_capacity)                                                                \
    X(engine_create)                                                                               \
    X(engine_destroy)                                                                              \
    X(stream_create)                                                                               \
    X(stream_destroy)                                                                              \
    X(stream_wait)                                                                                 \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(memory_set_data_handle)                                                                      \
    X(memory_desc_create_with_strides)                                                             \
    X(memory_desc_create_with_tag)                                                                 \
    X(memory_desc_clone)                                                                           \
    X(memory_desc_destroy)                                                                         \
    X(memory_desc_equal)                                                                           \
    X(memory_desc_get_size)                                                                        \
    X(memory_desc_query)                                                                           \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_scales)                                                                   \
    X(primitive_attr_set_scales_mask)                                                              \
    X(primitive_attr_set_zero_points)                                                              \
    X(primitive_attr_set_zero_points_mask)                                                         \
    X(primitive_attr_set_post_ops)                                                                 \
    X(primitive_attr_set_scratchpad_mode)                                                          \
    X(primitive_attr_set_fpmath_mode_v2)                                                           \
    X(primitive_attr_set_accumulation_mode)                                                        \
    X(primitive_attr_set_deterministic)                                                            \
    X(primitive_attr_get_post_ops)                                                                 \
    X(primitive_attr_get_fpmath_mode_v2)                                                           \
    X(primitive_attr_get_accumulation_mode)                                                        \
    X(primitive_attr_get_deterministic)                                                            \
    X(primitive_attr_get_scratchpad_mode)                                                          \
    X(post_ops_create)                                                                             \
    X(post_ops_destroy)                                                                            \
    X(post_ops_len)                                                                                \
    X(post_ops_get_kind)                                                                           \
    X(post_ops_append_sum)                                                                         \
    X(post_ops_append_eltwise)                                                                     \
    X(post_ops_append_binary)                                                                      \
    X(post_ops_append_prelu)                                                                       \
    X(post_ops_append_dw)                                                                          \
    X(post_ops_get_params_sum)                                                                     \
    X(post_ops_get_params_eltwise)                                                                 \
    X(post_ops_get_params_binary)                                                                  \
    X(post_ops_get_params_prelu)                                                                   \
    X(post_ops_get_params_dw)                                                                      \
    X(convolution_forward_primitive_desc_create)                                                   \
    X(deconvolution_forward_primitive_desc_create)                                                 \
    X(inner_product_forward_primitive_desc_create)                                                 \
    X(matmul_primitive_desc_create)                                                                \
    X(eltwise_forward_primitive_desc_create)                                                       \
    X(binary_primitive_desc_create)                                                                \
    X(sum_primitive_desc_create)                                                                   \
    X(softmax_forward_primitive_desc_create)                                                       \
    X(pooling_forward_primitive_desc_create)                                                       \
    X(resampling_forward_primitive_desc_create)                                                    \
    X(prelu_forward_primitive_desc_create)                                                         \
    X(reorder_primitive_desc_create)                                                               \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_desc_next_impl)                                                                    \
    X(primitive_desc_query)                                                                        \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_desc_get_attr)                                                                     \
    X(primitive_create)                                                                            \
    X(primitive_get_primitive_desc)                                                                \
    X(primitive_destroy)                                                                           \
    X(primitive_execute)

struct Library {
#define PQ_MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
    PQ_DNNL_FUNCTIONS(PQ_MEMBER)
#undef PQ_MEMBER
    void* handle = nullptr;
    std::string path;
};

// Opens the library at `path` (idempotent for the same path) or throws LibraryFault.
void load_library(const std::string& path);

namespace detail {
extern Library library;
}

// The table. Objects of this extension can only exist after load_library, so the hot path may skip
// the check that require_library makes.
inline const Library& lib() {
    return detail::library;
}

// The table, or LibraryFault when nothing was loaded.
const Library& require_library();

// Address of a symbol in the library or anything it depends on, null when absent. This is how the
// threading runtime that this very library uses is found, whichever that is.
void* find_symbol(const char* name);

} // namespace pq
