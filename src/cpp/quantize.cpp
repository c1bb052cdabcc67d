#include "quantize.hpp"

#include "wide.hpp"

#include <limits>

namespace pq {

namespace {

constexpr std::size_t lanes = 64;
// Adding and taking away 1.5 · 2^23 rounds a float below 2^22 to the nearest even whole number.
constexpr float rounder = 12582912.0f;

struct Ends {
    float lo, hi;
};

PQ_INLINE Ends range_of(const float* x, std::size_t count) {
    float lo[lanes] = {}, hi[lanes] = {}, odd[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j) {
            const float value = x[i + j];
            lo[j] = value < lo[j] ? value : lo[j];
            hi[j] = value > hi[j] ? value : hi[j];
            odd[j] += value - value; // 0, or NaN for good
        }
    }
    for (; i < count; ++i) {
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
        odd[0] += x[i] - x[i];
    }
    for (std::size_t j = 1; j < lanes; ++j) {
        lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
        hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
        odd[0] += odd[j];
    }
    return {lo[0] + odd[0], hi[0] + odd[0]};
}

template <typename Code>
PQ_INLINE bool codes_of(const float* __restrict x, std::size_t count, float scale,
                        std::int32_t zero_point, Code* __restrict codes) {
    // Clamping before the rounding is the same: the bounds are whole.
    const auto lo = static_cast<float>(std::numeric_limits<Code>::min() - zero_point);
    const auto hi = static_cast<float>(std::numeric_limits<Code>::max() - zero_point);
    std::int32_t odd = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float ratio = x[i] / scale;
        odd |= ratio != ratio;
        const float low = ratio > lo ? ratio : lo;
        const float level = (low < hi ? low : hi) + rounder - rounder;
        codes[i] = static_cast<Code>(static_cast<std::int32_t>(level) + zero_point);
    }
    return odd == 0;
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET Ends range_##LEVEL(const float* x, std::size_t count) {                                 \
        return range_of(x, count);                                                                 \
    }                                                                                              \
    template <typename Code>                                                                       \
    TARGET bool codes_##LEVEL(const float* x, std::size_t count, float scale,                      \
                              std::int32_t zero_point, Code* codes) {                              \
        return codes_of(x, count, scale, zero_point, codes);                                       \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

} // namespace

void ranges(const float* values, std::size_t rows, std::size_t columns, float* lo, float* hi) {
    static const auto range = widest(&range_512, &range_256, &range_any);
    for (std::size_t row = 0; row < rows; ++row) {
        const Ends ends = range(values + row * columns, columns);
        lo[row] = ends.lo;
        hi[row] = ends.hi;
    }
}

template <typename Code>
bool quantize(const float* values, std::size_t rows, std::size_t columns, const float* scales,
              const std::int32_t* zero_points, Code* codes) {
    static const auto convert = widest(&codes_512<Code>, &codes_256<Code>, &codes_any<Code>);
    bool all_numbers = true;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t at = row * columns;
        all_numbers &= convert(values + at, columns, scales[row], zero_points[row], codes + at);
    }
    return all_numbers;
}

template bool quantize(const float*, std::size_t, std::size_t, const float*, const std::int32_t*,
                       std::uint8_t*);
template bool quantize(const float*, std::size_t, std::size_t, const float*, const std::int32_t*,
                       std::int8_t*);

} // namespace pq
