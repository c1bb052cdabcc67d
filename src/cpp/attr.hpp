// The attributes of a primitive. The only place that sets scales and zero points or appends
// post-ops.
#pragma once

#include "handle.hpp"

namespace pq {

struct RuntimeValue { // a scale or zero point: structure only, its values are arguments of execute
    std::string arg;  // "src", "src1", "wei", "dst"
    int mask = 0;
    dnnl_data_type_t dtype = dnnl_f32;
    Dims groups;
};

struct PostOp {
    enum class Kind { sum, eltwise, binary, prelu, depthwise } kind = Kind::sum;
    float scale = 1.0F; // sum
    std::int32_t zero_point = 0;
    dnnl_data_type_t dtype = dnnl_data_type_undef;
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef; // eltwise, binary
    float alpha = 0.0F, beta = 0.0F;
    TensorSpec src1;                                   // binary
    int mask = 0;                                      // prelu
    dnnl_data_type_t wei_dtype = dnnl_data_type_undef; // depthwise
    dnnl_data_type_t bias_dtype = dnnl_data_type_undef;
    dnnl_data_type_t dst_dtype = dnnl_data_type_undef;
    dnnl_dim_t kernel = 0, stride = 0, padding = 0;
};

struct AttrSpec {
    std::vector<RuntimeValue> scales, zero_points;
    std::vector<PostOp> post_ops;
    dnnl_fpmath_mode_t fpmath = dnnl_fpmath_mode_strict;
    bool fpmath_apply_to_int = false;
    dnnl_accumulation_mode_t accumulation = dnnl_accumulation_mode_strict;
    bool deterministic = false;
};

AttrSpec attr_from_python(const py::dict& spec);

// Always with user scratchpad mode: the library's own scratchpad is not safe with threads.
Attribute make_attr(const AttrSpec& spec);

// What the library says it holds, in the same form that attr_from_python reads (without scales and
// zero points, for which the C API has no getter).
py::dict attr_readback(const_dnnl_primitive_attr_t attr);

dnnl_alg_kind_t eltwise_alg(const std::string& name);
dnnl_alg_kind_t binary_alg(const std::string& name);

} // namespace pq
