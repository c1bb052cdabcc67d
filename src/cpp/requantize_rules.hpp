// The arithmetic of each kind of requantizer on one accumulator, written without branches so that
// loops over it vectorise. What each means is said in Python, beside the value that users make
// (Requantizer), and stated there in NumPy; tests hold the two equal.
#pragma once

#include "wide.hpp"

#include <cstddef>
#include <cstdint>

namespace pq {

// The constants of one channel. A kind reads those that it has.
struct Constants {
    std::int32_t multiplier, left, right, bias, zero_point, lo, hi; // lo, hi: before zero_point
    std::int32_t mask, up, less, odd;                               // see nudge()
    float factor, then, last, real_bias;
    double real_factor, power; // power: 2^shift
    std::int64_t wide_up, wide_less;
};

// The constants of every channel, one array each.
struct Columns {
    const std::int32_t *multiplier, *left, *right, *bias, *zero_point, *lo, *hi;
    const std::int32_t *mask, *up, *less, *odd;
    const float *factor, *then, *last, *real_bias;
    const double *real_factor, *power;
    const std::int64_t *wide_up, *wide_less;
    std::size_t channels;

    PQ_INLINE Constants at(std::size_t i) const {
        return {multiplier[i],  left[i],   right[i],   bias[i],     zero_point[i],
                lo[i],          hi[i],     mask[i],    up[i],       less[i],
                odd[i],         factor[i], then[i],    last[i],     real_bias[i],
                real_factor[i], power[i],  wide_up[i], wide_less[i]};
    }
};

// v / 2^right rounded down.
PQ_INLINE std::int32_t shifted(std::int32_t v, std::int32_t right) {
    return v >> right;
}

PQ_INLINE std::int64_t shifted(std::int64_t v, std::int32_t right) {
    // AVX2 has no arithmetic shift for 64 bits.
    const std::uint64_t flip = v < 0 ? ~std::uint64_t{0} : 0;
    return static_cast<std::int64_t>(((static_cast<std::uint64_t>(v) ^ flip) >> right) ^ flip);
}

// What is added to v before its last bits are cut off, for the quotient to be rounded: `up`, less
// `less` where v < 0 and, if `parity`, with `odd` where the quotient rounded down is odd.
template <bool parity, typename Int>
PQ_INLINE Int nudge(Int v, std::int32_t right, Int up, Int less, std::int32_t odd) {
    const Int sum = up - ((v < 0 ? -1 : 0) & less);
    return parity ? sum + (-(shifted(v, right) & 1) & odd) : sum;
}

// v / 2^right, rounded.
template <bool parity>
PQ_INLINE std::int32_t rounded(std::int32_t v, const Constants& c) {
    // There may be no room for the sum with v itself.
    const auto sum = static_cast<std::uint32_t>((v & c.mask)) +
                     static_cast<std::uint32_t>(nudge<parity>(v, c.right, c.up, c.less, c.odd));
    return shifted(v, c.right) + static_cast<std::int32_t>(sum >> c.right);
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

// To the nearest integer, ties to even, for |v| < 2^22.
PQ_INLINE std::int32_t nearest_even_int(float v) {
    const float sum = v + 12582912.0F; // 1.5 · 2^23: the last bit of the sum counts ones
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4B400000; // the bits of 1.5 · 2^23
}

// As the machine's own max and min have it: lo for what is no number.
template <typename T>
PQ_INLINE T clamped(T v, T lo, T hi) {
    const T above = v > lo ? v : lo;
    return above < hi ? above : hi;
}

// Bounds are whole: before or after a rounding to the nearest is the same.
template <typename T>
PQ_INLINE T bounded(T v, const Constants& c) {
    return clamped(v, static_cast<T>(c.lo), static_cast<T>(c.hi));
}

// Stored in 8 bits, so that bounds, with or without the zero point, are small whole floats.
template <typename Out>
constexpr bool narrow = sizeof(Out) == 1;

// A rule makes x of an accumulator by `start`, and of x the result without its zero point by
// `apply`. `fault` gets a bit where an accumulator leaves 32 bits.
struct Biased {
    static constexpr bool multiplies = false;

    static PQ_INLINE std::int32_t start(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const auto a = static_cast<std::uint32_t>(acc), b = static_cast<std::uint32_t>(c.bias);
        const std::uint32_t sum = a + b;
        fault |= ((a ^ sum) & (b ^ sum)) >> 31;
        return static_cast<std::int32_t>(sum);
    }
};

// A rule whose `apply` gets 32 bits of x · multiplier beside x: (product + add) >> by.
struct BiasedProducts : Biased {
    static constexpr bool multiplies = true;
    static constexpr std::int64_t add = 0;
    static constexpr int by = 32;
};

// `quick`: without left shifts, without a multiplier of -2^31, and a rounding without parity.
template <bool quick>
struct TwoStep : BiasedProducts {
    static constexpr std::int64_t add = std::int64_t{1} << 30;
    static constexpr int by = 31;

    static PQ_INLINE std::int32_t start(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const std::int32_t x = Biased::start(acc, c, fault);
        if (quick) return x;
        const auto wide = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << c.left);
        fault |= static_cast<std::uint32_t>((wide >> c.left) ^ x);
        return wide;
    }

    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, std::int32_t cut, const Constants& c) {
        // Only -2^31 times -2^31 needs a 33rd bit; it saturates.
        if (!quick && x == INT32_MIN && c.multiplier == INT32_MIN) cut = INT32_MAX;
        return bounded(rounded<!quick>(cut, c), c);
    }
};

// By 2^-33 or less, so that the product's upper half is enough: `right` is less by 32. `sticky`: by
// 2^-34 or less, and all that is cut off counts; it leaves its trace in the last bit.
template <bool sticky>
struct ShiftUpper : BiasedProducts {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, std::int32_t cut, const Constants& c) {
        if (!sticky) return bounded(shifted(cut + c.up, c.right), c);
        const std::uint32_t low =
                static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(c.multiplier);
        const std::int32_t v = cut | (low != 0 ? 1 : 0);
        return bounded(shifted(v + nudge<true>(v, c.right, c.up, c.less, c.odd), c.right), c);
    }
};

struct Shift : Biased {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, const Constants& c, std::uint32_t&) {
        // The requantizer bounds multiplier · 2^left; 63 bits are enough for the sum, too.
        const auto product =
                static_cast<std::uint64_t>(static_cast<std::int64_t>(x) * c.multiplier);
        const auto v = static_cast<std::int64_t>(product << c.left);
        const std::int64_t sum = v + nudge<true>(v, c.right, c.wide_up, c.wide_less, c.odd);
        return static_cast<std::int32_t>(bounded(shifted(sum, c.right), c));
    }
};

struct Float : Biased {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, const Constants& c, std::uint32_t&) {
        const float v = static_cast<float>(x) * c.factor;
        if constexpr (narrow<Out>) return nearest_even_int(bounded(v, c));
        return static_cast<std::int32_t>(nearest_even(bounded(static_cast<double>(v), c)));
    }
};

// The number as a float holds it.
PQ_INLINE double in_float(double v) {
    return static_cast<double>(static_cast<float>(v));
}

// Double arithmetic between values that are stored in floats: 2^40 is beyond all bounds.
struct DoubleOnFloats : Biased {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, const Constants& c, std::uint32_t&) {
        const double v = static_cast<double>(static_cast<float>(x)) * c.real_factor;
        if constexpr (narrow<Out>) return static_cast<std::int32_t>(nearest_even(bounded(v, c)));
        const double whole = in_float(nearest_even(clamped(v, -0x1p40, 0x1p40)));
        return static_cast<std::int32_t>(bounded(whole, c));
    }
};

// |x · m| < 2^51 is the requantizer's promise. Floats hold x and what comes after each rounding.
template <bool single>
struct TwoRound : Biased {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c, std::uint32_t&) {
        const auto x = static_cast<float>(acc);
        const double v =
                single ? static_cast<double>(x * c.factor) : static_cast<double>(x) * c.real_factor;
        const double last = in_float(nearest_away(v)) * c.power;
        return static_cast<std::int32_t>(nearest_away(bounded(last, c)));
    }
};

// TwoRound by 2^-31 or more, |m| <= 1 - 2^-20, stored in 8 bits, in half of the instructions. Half
// less its last bit, added, rounds to the nearest with ties away from zero.
template <bool single>
struct TwoRoundNarrow : Biased {
    static constexpr double most = 1.0 - 0x1p-20; // x · m, rounded, stays below 2^31

    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c, std::uint32_t&) {
        const auto x = static_cast<float>(acc);
        std::int32_t whole = 0;
        if constexpr (single) {
            const float v = x * c.factor;
            whole = static_cast<std::int32_t>(v + __builtin_copysignf(0x1.FFFFFEp-2F, v));
        } else {
            const double v = static_cast<double>(x) * c.real_factor;
            const double near = v + __builtin_copysign(0x1.FFFFFFFFFFFFFp-2, v);
            // Stored in a float between the two roundings.
            whole = static_cast<std::int32_t>(static_cast<float>(static_cast<std::int32_t>(near)));
        }
        return bounded(rounded<false>(whole, c), c);
    }
};

// The zero point is in the sum, so bounds are moved back, and so is what comes out.
template <bool divide>
struct OneDNN : Biased {
    static PQ_INLINE std::int32_t start(std::int32_t acc, const Constants&, std::uint32_t&) {
        return acc;
    }

    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c, std::uint32_t&) {
        const float scaled = static_cast<float>(acc) * c.factor * c.then + c.real_bias;
        const float v =
                (divide ? scaled / c.last : scaled * c.last) + static_cast<float>(c.zero_point);
        if constexpr (narrow<Out>) {
            const auto lo = static_cast<float>(c.lo + c.zero_point);
            const auto hi = static_cast<float>(c.hi + c.zero_point);
            return nearest_even_int(clamped(v, lo, hi)) - c.zero_point;
        }
        const double lo = static_cast<double>(c.lo) + c.zero_point;
        const double hi = static_cast<double>(c.hi) + c.zero_point;
        return static_cast<std::int32_t>(nearest_even(clamped(static_cast<double>(v), lo, hi))) -
               c.zero_point;
    }
};

// With the best double for the real factor. `sure`: its products are exact, ties are ties.
// Otherwise `fault` says that it cannot tell the side of a tie, and what is done again in 128 bits.
template <bool away, bool sure>
struct Exact : Biased {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t x, const Constants& c, std::uint32_t& fault) {
        const double v = bounded(static_cast<double>(x) * c.real_factor, c);
        const double whole = away ? nearest_away(v) : nearest_even(v);
        if constexpr (!sure) {
            // 8 bits and a zero point of 8 bits: less than 2^10.
            const double size = narrow<Out> ? 0x1p10 : __builtin_fabs(v) + 1.0;
            fault |= static_cast<std::uint32_t>(__builtin_fabs(v - whole) > 0.5 - size * 0x1p-50);
        }
        return static_cast<std::int32_t>(whole);
    }
};

} // namespace pq
