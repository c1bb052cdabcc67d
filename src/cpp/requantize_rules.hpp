// The arithmetic of each kind of requantizer on one accumulator, written without branches so that
// loops over it vectorise. What each means is said in requantize/value.py; the statement to
// compare with is requantize/statement.py.
#pragma once

#include "wide.hpp"

#include <cstddef>
#include <cstdint>

namespace pq {

enum class Rounding {
    half_away_from_zero,
    half_up,
    half_down,
    half_to_even,
    half_to_odd,
    half_towards_zero,
    towards_zero,
    away_from_zero,
    up,
    down,
};

// The constants of one channel. A kind reads those that it has.
struct Constants {
    std::int32_t multiplier, shift_left, shift_right, bias, zero_point, lo, hi; // lo, hi: before it
    float factor, then, last, real_bias;
    double real_factor, power; // power: 2^shift
    std::uint64_t divisor;     // 2^shift_right
};

// The constants of every channel, one array each, from the channel that a loop starts at.
struct Columns {
    const std::int32_t *multiplier, *shift_left, *shift_right, *bias, *zero_point, *lo, *hi;
    const float *factor, *then, *last, *real_bias;
    const double *real_factor, *power;
    const std::uint64_t* divisor;

    PQ_INLINE Constants at(std::size_t i) const {
        return {multiplier[i], shift_left[i],  shift_right[i], bias[i],   zero_point[i],
                lo[i],         hi[i],          factor[i],      then[i],   last[i],
                real_bias[i],  real_factor[i], power[i],       divisor[i]};
    }

    PQ_INLINE Columns from(std::size_t i) const {
        return {multiplier + i, shift_left + i,  shift_right + i, bias + i,   zero_point + i,
                lo + i,         hi + i,          factor + i,      then + i,   last + i,
                real_bias + i,  real_factor + i, power + i,       divisor + i};
    }
};

// v / full, which is 2^r, 0 <= r < bits, rounded. Signs and parities are numbers here, not
// conditions: compilers make branches of those.
template <Rounding mode, typename Int, typename Word>
PQ_INLINE Int shift_round(Int v, Word r, Word full) {
    const Word negative = Word(v) >> (8 * sizeof(Int) - 1), flip = 0 - negative;
    // An arithmetic shift by a logical one: AVX2 has no other for 64 bits.
    const Word floor = ((Word(v) ^ flip) >> r) ^ flip;
    const Word rest = Word(v) - (floor << r);      // from 0 to 2^r - 1
    const Word odd = floor & 1, twice = rest << 1; // twice: even, and equal to full at ties
    switch (mode) {
    case Rounding::half_up:
        return Int(floor + (twice + 1 > full));
    case Rounding::half_down:
        return Int(floor + (twice > full));
    case Rounding::half_away_from_zero:
        return Int(floor + (twice + (negative ^ 1) > full));
    case Rounding::half_towards_zero:
        return Int(floor + (twice + negative > full));
    case Rounding::half_to_even:
        return Int(floor + (twice + odd > full));
    case Rounding::half_to_odd:
        return Int(floor + (twice + (odd ^ 1) > full));
    case Rounding::towards_zero:
        return Int(floor + (rest > negative - 1));
    case Rounding::away_from_zero:
        return Int(floor + (rest > (negative ^ 1) - 1));
    case Rounding::up:
        return Int(floor + (rest > 0));
    case Rounding::down:
        break;
    }
    return Int(floor);
}

// To the nearest integer, ties to even, for |v| < 2^51 in the default rounding mode.
PQ_INLINE double nearest_even(double v) {
    constexpr double magic = 6755399441055744.0; // 1.5 · 2^52: the sum has no room for a fraction
    return (v + magic) - magic;
}

// To the nearest integer, ties away from zero, for |v| < 2^51.
PQ_INLINE double nearest_away(double v) {
    const double size = __builtin_fabs(v);
    const double even = nearest_even(size);
    const double down = size - even; // 0.5 only at a tie that went down
    return __builtin_copysign(even + (down < 0.5 ? 0.0 : 1.0), v);
}

// As the machine's own max and min have it: lo for what is no number.
template <typename T>
PQ_INLINE T clamped(T v, T lo, T hi) {
    const T above = v > lo ? v : lo;
    return above < hi ? above : hi;
}

// Stored in 8 bits, so that bounds, with or without the zero point, are small whole floats.
template <typename Out>
constexpr bool narrow = sizeof(Out) == 1;

// To the nearest integer, ties to even, for |v| < 2^22.
PQ_INLINE std::int32_t nearest_even_int(float v) {
    const float sum = v + 12582912.0F; // 1.5 · 2^23: the last bit of the sum counts ones
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4B400000; // the bits of 1.5 · 2^23
}

PQ_INLINE std::int32_t saturated(double whole, const Constants& c) {
    return static_cast<std::int32_t>(
                   clamped(whole, static_cast<double>(c.lo), static_cast<double>(c.hi))) +
           c.zero_point;
}

// acc + bias in 32 bits; `fault` gets a bit when that is not enough.
PQ_INLINE std::int32_t biased(std::int32_t acc, const Constants& c, std::uint32_t& fault) {
    const auto a = static_cast<std::uint32_t>(acc), b = static_cast<std::uint32_t>(c.bias);
    const std::uint32_t sum = a + b;
    fault |= ((a ^ sum) & (b ^ sum)) >> 31;
    return static_cast<std::int32_t>(sum);
}

// Of a rule that begins with accumulators.
struct FromAccumulators {
    static constexpr bool after_products = false;
};

template <Rounding mode>
struct TwoStep : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const std::int32_t x = biased(acc, c, fault);
        const auto wide = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << c.shift_left);
        fault |= static_cast<std::uint32_t>((wide >> c.shift_left) ^ x);
        const std::int64_t product = static_cast<std::int64_t>(wide) * c.multiplier;
        const auto rounded = static_cast<std::uint64_t>(product + (std::int64_t{1} << 30)) >> 31;
        // Only -2^31 times -2^31 needs a 33rd bit; it saturates.
        const auto over =
                static_cast<std::uint32_t>((wide == INT32_MIN) & (c.multiplier == INT32_MIN));
        const auto high = static_cast<std::int32_t>(static_cast<std::uint32_t>(rounded) - over);
        const auto right = static_cast<std::uint32_t>(c.shift_right);
        const std::int32_t y =
                shift_round<mode, std::int32_t, std::uint32_t>(high, right, 1U << right);
        return clamped(y, c.lo, c.hi) + c.zero_point;
    }
};

template <Rounding mode>
struct Shift : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const std::int32_t x = biased(acc, c, fault);
        // The requantizer bounds multiplier · 2^shift_left: 63 bits are enough.
        const std::int64_t product = static_cast<std::int64_t>(x) * c.multiplier;
        const auto wide = static_cast<std::int64_t>(static_cast<std::uint64_t>(product)
                                                    << static_cast<std::uint64_t>(c.shift_left));
        // A value that is shifted right has 62 bits, so that half a divisor can be added.
        const std::int64_t y =
                mode == Rounding::half_up
                        ? (wide + static_cast<std::int64_t>(c.divisor >> 1)) >> c.shift_right
                        : shift_round<mode, std::int64_t, std::uint64_t>(
                                  wide, static_cast<std::uint64_t>(c.shift_right), c.divisor);
        return static_cast<std::int32_t>(clamped<std::int64_t>(y, c.lo, c.hi)) + c.zero_point;
    }
};

struct Float : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const float v = static_cast<float>(biased(acc, c, fault)) * c.factor;
        if constexpr (narrow<Out>) {
            const auto lo = static_cast<float>(c.lo), hi = static_cast<float>(c.hi);
            return nearest_even_int(clamped(v, lo, hi)) + c.zero_point;
        }
        return static_cast<std::int32_t>(
                       nearest_even(clamped(static_cast<double>(v), static_cast<double>(c.lo),
                                            static_cast<double>(c.hi)))) +
               c.zero_point;
    }
};

// For Exact, whose accumulators stay whole.
struct Double : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const double v = static_cast<double>(biased(acc, c, fault)) * c.real_factor;
        return static_cast<std::int32_t>(nearest_even(
                       clamped(v, static_cast<double>(c.lo), static_cast<double>(c.hi)))) +
               c.zero_point;
    }
};

// The number as a float holds it.
PQ_INLINE double in_float(double v) {
    return static_cast<double>(static_cast<float>(v));
}

// Double arithmetic between values that are stored in floats: 2^40 is beyond all bounds.
struct DoubleOnFloats : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const double v = static_cast<double>(static_cast<float>(biased(acc, c, fault)));
        return saturated(in_float(nearest_even(clamped(v * c.real_factor, -0x1p40, 0x1p40))), c);
    }
};

// |x · m| < 2^51 is the requantizer's promise. Floats hold x and what comes after each rounding.
template <bool single>
struct TwoRound : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const auto x = static_cast<float>(biased(acc, c, fault));
        const double v =
                single ? static_cast<double>(x * c.factor) : static_cast<double>(x) * c.real_factor;
        return saturated(nearest_away(in_float(nearest_away(v)) * c.power), c);
    }
};

template <bool divide>
struct OneDNN : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c, std::uint32_t&) {
        const float scaled = static_cast<float>(acc) * c.factor * c.then + c.real_bias;
        const float v =
                (divide ? scaled / c.last : scaled * c.last) + static_cast<float>(c.zero_point);
        // Saturated with the zero point in it, so the bounds are moved back.
        if constexpr (narrow<Out>) {
            const auto lo = static_cast<float>(c.lo + c.zero_point);
            const auto hi = static_cast<float>(c.hi + c.zero_point);
            return nearest_even_int(clamped(v, lo, hi));
        }
        const double lo = static_cast<double>(c.lo) + c.zero_point;
        const double hi = static_cast<double>(c.hi) + c.zero_point;
        return static_cast<std::int32_t>(nearest_even(clamped(static_cast<double>(v), lo, hi)));
    }
};

// As Double with the best double for the real factor; `fault` when that cannot tell which side of
// a tie the value is on, and the block is to be done again in 128 bits.
struct Exact : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        std::uint32_t overflow = 0;
        const double v = static_cast<double>(biased(acc, c, overflow)) * c.real_factor;
        const double inside =
                clamped(v, static_cast<double>(c.lo) - 1.0, static_cast<double>(c.hi) + 1.0);
        const double whole = nearest_even(inside);
        const double gap = __builtin_fabs(inside - whole);
        // 8 bits and a zero point of 8 bits: less than 2^10.
        const double size = narrow<Out> ? 0x1p10 : __builtin_fabs(inside) + 1.0;
        const double room = 0.5 - size * 0x1p-50;
        fault |= overflow | static_cast<std::uint32_t>(gap > room);
        return saturated(whole, c);
    }
};

} // namespace pq
