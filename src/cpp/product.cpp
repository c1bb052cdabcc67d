#include "product.hpp"

#include "wide.hpp"

namespace pq {

namespace {

constexpr float most = 255.0f;

PQ_INLINE void products(const Product& product, const std::uint8_t* __restrict x,
                        const float* __restrict factors, std::uint8_t* __restrict y,
                        std::size_t count) {
    const std::int32_t of_x = product.zero_point[0], of_y = product.zero_point[2];
    const int flip_x = product.flip[0], flip_y = product.flip[2];
    // Clamping before the rounding is the same: the bounds are whole.
    const float lo = -static_cast<float>(of_y), hi = most - static_cast<float>(of_y);
    for (std::size_t i = 0; i < count; ++i) {
        const float value = static_cast<float>((x[i] ^ flip_x) - of_x) * factors[i];
        const float low = value > lo ? value : lo;
        const float shifted = (low < hi ? low : hi) + rounder;
        const auto bits = __builtin_bit_cast(std::int32_t, shifted);
        y[i] = static_cast<std::uint8_t>((bits + of_y) ^ flip_y);
    }
}

PQ_INLINE void sums(const CodeSum& sum, const std::uint8_t* __restrict x,
                    const std::uint8_t* __restrict g, std::uint8_t* __restrict y,
                    std::size_t count) {
    const auto [of_x, of_g, of_y] = sum.zero_point;
    const auto [by_x, by_g, by_y] = sum.scale;
    const int flip_x = sum.flip[0], flip_g = sum.flip[1], flip_y = sum.flip[2];
    const float lo = -static_cast<float>(of_y), hi = most - static_cast<float>(of_y);
    for (std::size_t i = 0; i < count; ++i) {
        const float first = static_cast<float>((x[i] ^ flip_x) - of_x) * by_x;
        const float value = (first + static_cast<float>((g[i] ^ flip_g) - of_g) * by_g) / by_y;
        const float low = value > lo ? value : lo;
        const float shifted = (low < hi ? low : hi) + rounder;
        const auto bits = __builtin_bit_cast(std::int32_t, shifted);
        y[i] = static_cast<std::uint8_t>((bits + of_y) ^ flip_y);
    }
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET void sums_##LEVEL(const CodeSum& sum, const std::uint8_t* x, const std::uint8_t* g,     \
                             std::uint8_t* y, std::size_t count) {                                 \
        sums(sum, x, g, y, count);                                                                 \
    }                                                                                              \
    TARGET void products_##LEVEL(const Product& product, const std::uint8_t* x,                    \
                                 const float* factors, std::uint8_t* y, std::size_t count) {       \
        products(product, x, factors, y, count);                                                   \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

} // namespace

void multiply_codes(const Product& product, const std::uint8_t* x, const float* factors,
                    std::uint8_t* y, std::size_t count) {
    static const auto loop = widest(&products_512, &products_256, &products_any);
    loop(product, x, factors, y, count);
}

void add_codes(const CodeSum& sum, const std::uint8_t* x, const std::uint8_t* g, std::uint8_t* y,
               std::size_t count) {
    static const auto loop = widest(&sums_512, &sums_256, &sums_any);
    loop(sum, x, g, y, count);
}

} // namespace pq
