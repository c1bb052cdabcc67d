// Products of rows of 8-bit codes with a tile of weights in groups: the one kernel of this kind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pq {

// Columns that lie together, all groups one after the other. Codes are unsigned; of a group, so
// many steps, each of every column: four codes, or eight of 4 bits, the first four in the low
// halves of four bytes. Behind a group's end there are zeros.
struct GroupedTile {
    static constexpr std::size_t lanes = 64;

    const std::uint8_t* codes;
    const float* scales;        // (groups, lanes)
    const std::uint8_t* points; // (groups, lanes); null: `point` is that of all
    const std::int32_t* whole;  // (groups, lanes) sums of codes less their zero points, or null
    std::int32_t point;
    std::size_t groups, steps;
    bool are_nibbles;

    std::size_t codes_of_step() const { return are_nibbles ? 8 : 4; }
};

// Rows of signed codes, in groups as long as those of a tile, with 0 behind their ends.
struct CodeRows {
    std::size_t rows;
    const std::int8_t* codes;   // (groups, rows, codes of a group)
    const std::int32_t* totals; // (groups, rows) sums of codes
    const std::int32_t* points; // (parts, rows), or null: 0
    const float* scales;        // (parts, rows)
    std::size_t parts;          // 1, or groups
};

// values[row][lane] = Σ (float(acc) · scale[group][lane]) over groups in their order, of rows from
// `begin` to `end`; times the scale of the row's own group, where a row has one for each:
//
//     acc = Σ (code − zero point) · (weight − zero point)     exact where it fits into 32 bits
//
// Each product and each sum of floats is rounded to float32; sums begin with 0.
using TileProducts = void (*)(const GroupedTile& tile, const CodeRows& src, std::size_t begin,
                              std::size_t end, float* values);

// The fastest that this process may use.
TileProducts best_tile_products();

} // namespace pq
