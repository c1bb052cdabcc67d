// An index space of several tensors, walked through row by row.
#pragma once

#include "memory.hpp"

#include <numeric>
#include <vector>

namespace pq {

// An index space as few rows as can be, each row over the dimension in which dst lies closest.
struct Rows {
    Dims dims;
    std::vector<Dims> strides; // of each source, and of dst

    std::size_t inner() const { return static_cast<std::size_t>(dims.back()); }
    std::size_t size() const {
        return std::accumulate(dims.begin(), dims.end(), std::size_t{1},
                               [](std::size_t product, dnnl_dim_t dim) {
                                   return product * static_cast<std::size_t>(dim);
                               });
    }
};

Rows rows_of(const Dims& dims, const std::vector<Dims>& strides);

// Throws ShapeError or LayoutError unless there are strides of so many tensors, of all dims: 0 or
// more, and of dst, the last, 1 or more.
void check_space(const Dims& dims, const std::vector<Dims>& strides, std::size_t tensors);

// Throws LayoutError unless the elements of dst lie apart: threads write them side by side, and
// they are counted by its dims.
void check_apart(const Dims& dims, const Dims& dst);

// Where each tensor is in a row, while rows are gone through in order.
class Walk {
public:
    Walk(const Rows& rows, std::size_t row) : rows_(rows), at_(rows.dims.size() - 1, 0) {
        for (std::size_t axis = at_.size(); axis-- > 0;) {
            const auto dim = static_cast<std::size_t>(rows.dims[axis]);
            at_[axis] = static_cast<dnnl_dim_t>(row % dim);
            row /= dim;
            for (std::size_t i = 0; i < rows.strides.size(); ++i)
                offsets_[i] += at_[axis] * rows.strides[i][axis];
        }
    }

    dnnl_dim_t offset(std::size_t tensor) const { return offsets_[tensor]; }

    void next() {
        for (std::size_t axis = at_.size(); axis-- > 0;) {
            const dnnl_dim_t back = at_[axis];
            const bool wraps = ++at_[axis] == rows_.dims[axis];
            if (wraps) at_[axis] = 0;
            for (std::size_t i = 0; i < rows_.strides.size(); ++i)
                offsets_[i] += (wraps ? -back : 1) * rows_.strides[i][axis];
            if (!wraps) return;
        }
    }

private:
    const Rows& rows_;
    Dims at_;
    dnnl_dim_t offsets_[4] = {}; // of at most 4 tensors
};

} // namespace pq
