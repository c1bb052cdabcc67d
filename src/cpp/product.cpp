#include "product.hpp"

#include "wide.hpp"

namespace pq {

namespace {

// Added to a float below 2^22, it leaves the nearest even whole number in the lowest bits.
constexpr float rounder = 12582912.0f;
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

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
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

} // namespace pq
