#include "index_space.hpp"

#include "errors.hpp"

#include <algorithm>
#include <string>

namespace pq {

Rows rows_of(const Dims& dims, const std::vector<Dims>& strides) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != 1) order.push_back(axis);
    const Dims& dst = strides.back();
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return dst[a] > dst[b]; });
    Rows rows{{}, std::vector<Dims>(strides.size())};
    for (const std::size_t axis : order) {
        bool goes_on = !rows.dims.empty();
        for (std::size_t i = 0; i < strides.size() && goes_on; ++i)
            goes_on = rows.strides[i].back() == strides[i][axis] * dims[axis];
        if (!goes_on) {
            rows.dims.push_back(dims[axis]);
            for (std::size_t i = 0; i < strides.size(); ++i)
                rows.strides[i].push_back(strides[i][axis]);
            continue;
        }
        rows.dims.back() *= dims[axis];
        for (std::size_t i = 0; i < strides.size(); ++i)
            rows.strides[i].back() = strides[i][axis];
    }
    if (rows.dims.empty()) {
        rows.dims.push_back(1);
        for (Dims& each : rows.strides)
            each.push_back(1);
    }
    return rows;
}

void check_space(const Dims& dims, const std::vector<Dims>& strides, std::size_t tensors) {
    if (strides.size() != tensors)
        throw ArgumentFault("LayoutError", "strides", std::to_string(strides.size()),
                            std::to_string(tensors));
    for (const dnnl_dim_t dim : dims)
        if (dim < 1) throw ArgumentFault("ShapeError", "dims", std::to_string(dim), "1 or more");
    for (std::size_t i = 0; i < strides.size(); ++i) {
        const dnnl_dim_t least = i + 1 == tensors ? 1 : 0;
        if (strides[i].size() != dims.size())
            throw ArgumentFault("LayoutError", "strides", std::to_string(strides[i].size()),
                                std::to_string(dims.size()));
        for (const dnnl_dim_t stride : strides[i])
            if (stride < least)
                throw ArgumentFault("LayoutError", "strides", std::to_string(stride),
                                    "none below " + std::to_string(least));
    }
}

void check_apart(const Dims& dims, const Dims& dst) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != 1) order.push_back(axis);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return dst[a] < dst[b]; });
    dnnl_dim_t least = 1;
    for (const std::size_t axis : order) {
        if (dst[axis] < least)
            throw ArgumentFault("LayoutError", "strides", dims_text(dst) + " of dst",
                                "elements apart from each other");
        least = dst[axis] * dims[axis]; // at most twice what reaches the last of them
    }
}

} // namespace pq
