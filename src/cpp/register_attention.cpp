#include "attention_pass.hpp"
#include "rooms.hpp"

#include <array>
#include <utility>

namespace pq {

namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Strides = std::array<std::size_t, 3>;

Pass attention_from_python(const std::array<std::size_t, 6>& rows,
                           const std::array<std::size_t, 3>& cache, bool are_codes, bool is_packed,
                           const std::array<Strides, 4>& strides, float scale, const Floats& cos,
                           const Floats& sin, bool is_paired) {
    const auto [batch, tokens, heads, groups, depth, width] = rows;
    const auto [capacity, layers, layer] = cache;
    const auto of = [&](std::size_t at) {
        return RowStrides{strides[at][0], strides[at][1], strides[at][2]};
    };
    const AttentionDims dims{batch, tokens,    heads, groups, depth, width, capacity, layers,
                             layer, is_packed, of(0), of(1),  of(2), of(3), scale};
    Rotation rotation;
    if (cos.size() != 0) {
        rotation = {static_cast<std::size_t>(cos.shape(cos.ndim() - 1)),
                    is_paired,
                    {cos.data(), cos.data() + cos.size()},
                    {sin.data(), sin.data() + sin.size()}};
    }
    return attention_pass(dims, are_codes, std::move(rotation));
}

} // namespace

void register_attention(py::module_& m) {
    m.def("attention_pass", &attention_from_python, py::arg("rows"), py::arg("cache"),
          py::arg("are_codes"), py::arg("is_packed"), py::arg("strides"), py::arg("scale"),
          py::arg("cos").noconvert(), py::arg("sin").noconvert(), py::arg("is_paired"),
          "Attention on a cache that grows in place.");
    m.def("attention_bytes", &attention_bytes, py::arg("layers"), py::arg("heads"),
          py::arg("depth"), py::arg("width"), py::arg("capacity"), py::arg("are_codes"),
          "Bytes of such a cache.");
}

} // namespace pq
