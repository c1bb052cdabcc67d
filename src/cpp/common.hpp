// First include of every file of the extension: pybind11, oneDNN's C types, and the names we use
// for them.
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pq {

namespace py = pybind11;

using Dims = std::vector<dnnl_dim_t>;

// What crosses the boundary for one tensor: logical dims, data type name, strides in elements
// (none: the library chooses the layout).
struct TensorSpec {
    Dims dims;
    dnnl_data_type_t dtype = dnnl_data_type_undef;
    std::optional<Dims> strides;
};

} // namespace pq
