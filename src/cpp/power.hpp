// Powers of e in float32, of plain products and sums: as exact as its last places or so.
#pragma once

#include "common.hpp"

#include "wide.hpp"

namespace pq {

inline constexpr float per_log2 = 1.44269504f, log2_high = 0.693145752f, log2_low = 1.42860677e-6f;
inline constexpr float lowest = -87.0f, highest = 88.0f; // whose powers of e are normal numbers

struct Power {
    float two_to_n, rest; // e^x = two_to_n · (1 + rest)
};

// x = n · log(2) + r, |r| <= log(2) / 2: of e^r - 1 the terms up to r^7, the next is below 2^-27.
PQ_INLINE Power power(float x) {
    const float from = x < lowest ? lowest : x; // NaN stays NaN
    const float clamped = from > highest ? highest : from;
    const float shifted = clamped * per_log2 + rounder;
    const float n = shifted - rounder;
    const float r = (clamped - n * log2_high) - n * log2_low;
    float sum = 1.0f / 5040;
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    const auto bits = __builtin_bit_cast(std::uint32_t, shifted) -
                      __builtin_bit_cast(std::uint32_t, rounder) + 127;
    return {__builtin_bit_cast(float, bits << 23U), sum * r * r + r};
}

PQ_INLINE float power_of(float x) {
    const Power e = power(x);
    return e.two_to_n + e.two_to_n * e.rest;
}

// e^2x - 1, exact to the last places near 0; of it, tanh(x) = that / (that + 2).
PQ_INLINE float of_tangent(float x) {
    const float far = 10.0f; // where it is 1
    const float from = x < -far ? -far : x;
    const Power e = power(2.0f * (from > far ? far : from));
    return e.two_to_n * e.rest + (e.two_to_n - 1.0f);
}

PQ_INLINE float tangent(float x) {
    const float less_one = of_tangent(x);
    return less_one / (less_one + 2.0f);
}

} // namespace pq
