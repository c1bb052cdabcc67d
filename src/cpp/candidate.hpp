// One implementation the library offers for a problem, and the way to the next one.
#pragma once

#include "arguments.hpp"
#include "problem.hpp"

namespace pq {

class Candidate {
public:
    Candidate(Problem problem, AttrSpec attr);

    // The library's name for this implementation; may be empty (descriptor served from its cache).
    std::string impl() const;

    // Moves to the next implementation; false, and no change, when there is none.
    bool next();

    // The layout of an execution argument as this implementation wants it.
    Layout layout(const std::string& name) const;

    std::size_t scratchpad_bytes() const;
    py::dict attr_readback() const;

    // Constant tensors (weights, bias, operands), copied into the layout this implementation wants.
    std::shared_ptr<Memory> pack(const std::string& name, const py::array& array) const;

    // Two 4-bit values a byte, low nibble first, row-major dims.
    std::shared_ptr<Memory> pack_nibbles(const std::string& name, const py::array& bytes) const;

    // Scales and zero points: as many values as the mask and groups select.
    std::shared_ptr<Memory> hold(const std::string& name, const py::array& values) const;

    const Problem& problem() const { return problem_; }
    const AttrSpec& attr() const { return attr_; }
    const_dnnl_primitive_desc_t desc() const { return desc_.get(); }
    int threads() const { return threads_; } // that it was made for

private:
    const RuntimeValue* runtime_value(const std::string& name) const;
    dnnl_dim_t value_count(const std::string& name, const RuntimeValue& value) const;

    Problem problem_;
    AttrSpec attr_;
    int threads_;
    PrimitiveDesc desc_;
};

} // namespace pq
