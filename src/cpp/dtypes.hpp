// Data types: oneDNN's enumerators, the names that cross the boundary, and NumPy's dtypes.
#pragma once

#include "common.hpp"

namespace pq {

// "u8", "s8", "s32", "f32", "bf16", "f16", "s4", "u4"; "undef" for none.
dnnl_data_type_t dtype_from_name(const std::string& name);
const char* dtype_name(dnnl_data_type_t dtype);

std::size_t dtype_bits(dnnl_data_type_t dtype);

// The native-order NumPy dtype of arrays of this type. bf16 exists only after register_dtype.
py::dtype numpy_dtype(dnnl_data_type_t dtype);

// Tells the extension which NumPy dtype stands for a type that NumPy itself lacks (bf16 of
// ml_dtypes).
void register_dtype(const std::string& name, const py::dtype& dtype);

} // namespace pq
