// Codes of products and sums of codes, by arithmetic instead of a table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pq {

// y = clamp(rne((x − z0) · f) + z2) with f = (g − z1) · scale, each operation in float32; of x, of
// g and of y in this order. Codes of s8 are bytes whose upper bit is turned over, and zero points
// are 128 more.
struct Product {
    float scale = 0;
    std::array<std::int32_t, 3> zero_point{};
    std::array<std::uint8_t, 3> flip{};

    float factor(std::uint8_t g) const {
        return static_cast<float>((g ^ flip[1]) - zero_point[1]) * scale;
    }
};

// Of `count` bytes side by side, and the factor of each.
void multiply_codes(const Product& product, const std::uint8_t* x, const float* factors,
                    std::uint8_t* y, std::size_t count);

// y = clamp(rne(((x − z0) · s0 + (g − z1) · s1) / s2) + z2), each operation in float32; zero points
// and flips as above.
struct CodeSum {
    std::array<float, 3> scale{};
    std::array<std::int32_t, 3> zero_point{};
    std::array<std::uint8_t, 3> flip{};
};

// Of `count` bytes side by side.
void add_codes(const CodeSum& sum, const std::uint8_t* x, const std::uint8_t* g, std::uint8_t* y,
               std::size_t count);

} // namespace pq
