// Rules that compute what those of requantize_rules.hpp do, in half of the instructions, for the
// constants that trained layers have: real multipliers below 1. Each says what it needs.
#pragma once

#include "requantize_rules.hpp"

namespace pq {

// Of a rule that goes on with the upper half of a product, which is not in memory for long.
struct AfterProducts {
    static constexpr bool after_products = true;
};

// v / 2^r, 0 <= r < 32, or 1 <= r when `shifts`, rounded; v > INT32_MIN. In two shifts, for half a
// divisor might not fit beside v.
template <Rounding mode, bool shifts>
PQ_INLINE std::int32_t shift_round_half(std::int32_t v, std::int32_t r) {
    static_assert(mode == Rounding::half_up || mode == Rounding::half_away_from_zero);
    const std::int32_t any = shifts || r != 0 ? 1 : 0;
    const std::int32_t below = mode == Rounding::half_up ? 0 : (v >> 31) & -any;
    const std::int32_t twice = (v + below) >> (r - any); // rounded down, with one bit to go
    return (twice >> any) + (twice & any);
}

// v / 2^r, 1 <= r <= 30, rounded; |v| <= 2^30, so that there is room for what is added to it. The
// last bit of v may stand for all those that were cut off before, if r > 1.
template <Rounding mode>
PQ_INLINE std::int32_t shift_round_small(std::int32_t v, std::int32_t r) {
    const std::int32_t half = 1 << (r - 1), most = (1 << r) - 1;
    const std::int32_t below = v >> 31, odd = (v >> r) & 1;
    switch (mode) {
    case Rounding::half_up:
        return (v + half) >> r;
    case Rounding::half_down:
        return (v + half - 1) >> r;
    case Rounding::half_away_from_zero:
        return (v + half + below) >> r;
    case Rounding::half_towards_zero:
        return (v + half - 1 - below) >> r;
    case Rounding::half_to_even:
        return (v + half - 1 + odd) >> r;
    case Rounding::half_to_odd:
        return (v + half - odd) >> r;
    case Rounding::towards_zero:
        return (v + (below & most)) >> r;
    case Rounding::away_from_zero:
        return (v + (~below & most)) >> r;
    case Rounding::up:
        return (v + most) >> r;
    case Rounding::down:
        break;
    }
    return v >> r;
}

// TwoStep without left shifts, from products that are `doubled`: nothing overflows but acc + bias.
// `shifts`: by one or more to the right.
template <Rounding mode, bool shifts>
struct TwoStepRest : AfterProducts {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t v, const Constants& c, std::uint32_t&) {
        return clamped(shift_round_half<mode, shifts>(v, c.shift_right), c.lo, c.hi) + c.zero_point;
    }
};

// Shift from products that are `cut` or `sticky`: shift_right is less by 32.
template <Rounding mode>
struct ShiftRest : AfterProducts {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t v, const Constants& c, std::uint32_t&) {
        return clamped(shift_round_small<mode>(v, c.shift_right), c.lo, c.hi) + c.zero_point;
    }
};

// TwoRound by 2^-31 or more, |m| <= 1 - 2^-20, stored in 8 bits. Half less its last bit, added,
// rounds to the nearest with ties away from zero.
template <bool single>
struct TwoRoundNarrow : FromAccumulators {
    static constexpr double most = 1.0 - 0x1p-20; // x · m, rounded, stays below 2^31

    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        static_assert(narrow<Out>);
        const auto x = static_cast<float>(biased(acc, c, fault));
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
        const std::int32_t y =
                shift_round_half<Rounding::half_away_from_zero, false>(whole, c.shift_right);
        return clamped(y, c.lo, c.hi) + c.zero_point;
    }
};

// Exact where x times the best double for the real factor is a double: at most 21 bits of it count.
struct ExactAway : FromAccumulators {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const double v = static_cast<double>(biased(acc, c, fault)) * c.real_factor;
        const double inside =
                clamped(v, static_cast<double>(c.lo) - 1.0, static_cast<double>(c.hi) + 1.0);
        return saturated(nearest_away(inside), c);
    }
};

} // namespace pq
