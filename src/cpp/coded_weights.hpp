// 8-bit weights, and their products with float32 rows that each call makes codes of.
#pragma once

#include "common.hpp"

#include <cstdint>
#include <vector>

namespace pq {

class CodedWeights {
public:
    static constexpr std::size_t lanes = 64;    // columns that lie together
    static constexpr std::size_t most_rows = 4; // which share what is read of weights

    CodedWeights() = default;

    // (columns, inner) codes, each column's worth its scale.
    CodedWeights(const std::int8_t* codes, const float* scales, std::size_t columns,
                 std::size_t inner);

    bool empty() const { return tiles_.empty(); }

    // out[row] += in[row] · weights, the row as u8 codes by its own range, as DynamicQuantizeLinear
    // has it; sums of codes are exact. A row that is not finite makes NaN. rows: `most_rows` at the
    // most. out: of a multiple of `lanes` values. codes: room for those of rows. Needs no GIL.
    void add_products(std::size_t rows, const float* const* in, float* const* out,
                      std::uint8_t* codes) const;

    // Bytes of a row of codes.
    std::size_t row_size() const;

private:
    std::size_t inner_ = 0;
    std::vector<std::int8_t> tiles_; // of `lanes` columns: (inner / 4, lanes, 4), 0 behind the end
    std::vector<float> scales_;      // of each column
    std::vector<std::int32_t> sums_; // of its codes
};

} // namespace pq
