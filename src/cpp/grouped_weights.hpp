// Weights that share scales in groups along the inner dimension, and their products with rows.
#pragma once

#include "grouped_tile.hpp"
#include "memory.hpp"

#include <vector>

namespace pq {

// Of rows, how their codes are made: by the range of each, or of each of its groups.
struct RowRanges {
    bool is_symmetric = true; // s8 codes; or u8, with zero points
    bool is_by_group = false;
};

// Codes of rows, and what they are worth, without gaps.
struct GivenRows {
    std::size_t rows;
    const void* codes; // (rows, inner)
    bool are_signed;
    const float* scales;             // (rows, parts)
    const std::int32_t* zero_points; // (rows, parts)
    std::size_t parts;               // 1, or the number of groups
};

// Immutable once made; safe to run from many threads at once.
class GroupedWeights {
public:
    struct Shape {
        std::size_t columns, inner, group; // inner: a multiple of group
        std::size_t groups() const { return inner / group; }
    };

    // codes: unsigned, (columns, inner), below 16 for nibbles; scales and points (columns, groups),
    // points: of one value for all where all are alike. bias: of each column, or empty.
    // keeps_sums: for rows whose codes have zero points. Needs no GIL.
    GroupedWeights(const Shape& shape, const std::uint8_t* codes, const float* scales,
                   const std::uint8_t* points, std::vector<float> bias, bool are_nibbles,
                   bool keeps_sums);

    const Shape& shape() const { return shape_; }
    std::size_t nbytes() const;

    // The codes that it was made of, (columns, inner).
    void unpack(std::uint8_t* codes) const;

    // dst[row][column] = products · scale of the row + bias, (rows, columns): the first as a tile
    // has it, the scale where it is one for the whole row, the bias where there is one. Each
    // operation is rounded to float32. Throws ArgumentError where values are not finite. Need no
    // GIL.
    void multiply(const float* src, std::size_t rows, const RowRanges& how, float* dst) const;
    void multiply(const GivenRows& src, float* dst) const;

private:
    std::size_t steps() const; // of a group
    std::size_t codes_of_group() const;
    GroupedTile tile(std::size_t at) const;
    void multiply(const CodeRows& src, float* dst) const;

    Shape shape_;
    bool are_nibbles_;
    AlignedBuffer codes_;
    std::vector<float> scales_, bias_;
    std::vector<std::uint8_t> points_; // empty: point_ is that of all
    std::vector<std::int32_t> whole_;
    std::int32_t point_ = 0;
};

} // namespace pq
