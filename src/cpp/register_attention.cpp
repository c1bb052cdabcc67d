#include "attention_pass.hpp"
#include "errors.hpp"
#include "rooms.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pq {

namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Sizes = std::vector<std::size_t>;

void check_count(const char* argument, std::size_t count, std::size_t wanted) {
    if (count != wanted)
        throw ArgumentFault("ArgumentError", argument, std::to_string(count),
                            std::to_string(wanted) + " of them");
}

Pass attention_from_python(const Sizes& rows, const Sizes& cache, bool are_codes, bool is_packed,
                           const std::vector<Sizes>& strides, float scale, std::size_t window,
                           float softcap, std::vector<float> sinks, const Floats& cos,
                           const Floats& sin, bool is_paired) {
    check_count("rows", rows.size(), 6);
    check_count("cache", cache.size(), 3);
    check_count("strides", strides.size(), 4);
    const auto of = [&](std::size_t at) {
        check_count("strides", strides[at].size(), 3);
        return RowStrides{strides[at][0], strides[at][1], strides[at][2]};
    };
    const AttentionDims dims{rows[0],  rows[1],  rows[2],  rows[3],   rows[4], rows[5],
                             cache[0], cache[1], cache[2], is_packed, of(0),   of(1),
                             of(2),    of(3),    scale,    window,    softcap};
    Rotation rotation;
    if (cos.size() != 0) {
        rotation = {static_cast<std::size_t>(cos.shape(cos.ndim() - 1)),
                    is_paired,
                    {cos.data(), cos.data() + cos.size()},
                    {sin.data(), sin.data() + sin.size()}};
    }
    return attention_pass(dims, are_codes, std::move(rotation), std::move(sinks));
}

} // namespace

void register_attention(py::module_& m) {
    m.def("attention_pass", &attention_from_python, py::arg("rows"), py::arg("cache"),
          py::arg("are_codes"), py::arg("is_packed"), py::arg("strides"), py::arg("scale"),
          py::arg("window"), py::arg("softcap"), py::arg("sinks"), py::arg("cos").noconvert(),
          py::arg("sin").noconvert(), py::arg("is_paired"),
          "Attention on a cache that grows in place.");
    m.def("attention_bytes", &attention_bytes, py::arg("layers"), py::arg("heads"),
          py::arg("depth"), py::arg("width"), py::arg("capacity"), py::arg("are_codes"),
          "Bytes of such a cache.");
}

} // namespace pq
