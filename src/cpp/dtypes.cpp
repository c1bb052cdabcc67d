#include "dtypes.hpp"

#include "errors.hpp"

#include <array>
#include <map>

namespace pq {

namespace {

struct Entry {
    dnnl_data_type_t dtype;
    const char* name;
    std::size_t bits;
    const char* numpy; // null: NumPy has none
};

constexpr std::array<Entry, 8> entries{{
        {dnnl_u8, "u8", 8, "u1"},
        {dnnl_s8, "s8", 8, "i1"},
        {dnnl_s32, "s32", 32, "=i4"},
        {dnnl_f32, "f32", 32, "=f4"},
        {dnnl_f16, "f16", 16, "=f2"},
        {dnnl_bf16, "bf16", 16, nullptr},
        {dnnl_s4, "s4", 4, nullptr},
        {dnnl_u4, "u4", 4, nullptr},
}};

const Entry& entry(dnnl_data_type_t dtype) {
    for (const Entry& candidate : entries)
        if (candidate.dtype == dtype) return candidate;
    throw ArgumentFault("DTypeError", "dtype", std::to_string(static_cast<int>(dtype)),
                        "a type this package knows");
}

// Leaked on purpose: the destructor would run after the interpreter is gone.
std::map<dnnl_data_type_t, py::dtype>& registered() {
    static auto* const dtypes = new std::map<dnnl_data_type_t, py::dtype>();
    return *dtypes;
}

} // namespace

dnnl_data_type_t dtype_from_name(const std::string& name) {
    if (name == "undef") return dnnl_data_type_undef;
    for (const Entry& candidate : entries)
        if (name == candidate.name) return candidate.dtype;
    throw ArgumentFault("DTypeError", "dtype", "'" + name + "'",
                        "one of u8, s8, s32, f32, bf16, f16, s4, u4");
}

const char* dtype_name(dnnl_data_type_t dtype) {
    return dtype == dnnl_data_type_undef ? "undef" : entry(dtype).name;
}

std::size_t dtype_bits(dnnl_data_type_t dtype) {
    return entry(dtype).bits;
}

py::dtype numpy_dtype(dnnl_data_type_t dtype) {
    auto& cache = registered();
    const auto found = cache.find(dtype);
    if (found != cache.end()) return found->second;
    const Entry& known = entry(dtype);
    if (known.numpy == nullptr) {
        throw ArgumentFault(
                "DTypeError", "dtype", known.name,
                "a type with a NumPy dtype (pip install ml_dtypes for bf16; 4-bit data is "
                "passed packed)");
    }
    return cache.emplace(dtype, py::dtype(known.numpy)).first->second;
}

void register_dtype(const std::string& name, const py::dtype& dtype) {
    registered().insert_or_assign(dtype_from_name(name), dtype);
}

} // namespace pq
