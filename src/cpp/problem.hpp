// What to compute: tensors and parameters of one primitive, turned into a primitive descriptor.
#pragma once

#include "attr.hpp"
#include "memory.hpp"

#include <map>

namespace pq {

struct Problem {
    std::string kind;
    std::string text; // for messages only
    std::map<std::string, Layout> tensors;
    Dims strides, dilation, padding_lo, padding_hi, kernel;
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
    float alpha = 0.0F, beta = 0.0F;
    int axis = 0;
    std::vector<float> sum_scales;
};

// Reads (kind, {name: tensor}, params).
Problem problem_from_python(const py::tuple& boundary, std::string text);

// The first implementation the library offers. Throws DnnlFault (unimplemented when it offers
// none).
PrimitiveDesc make_primitive_desc(const Problem& problem, dnnl_primitive_attr_t attr);

} // namespace pq
