// Rules that compute what those of requantize_rules.hpp do, in half of the instructions, for the
// constants that trained layers have: real multipliers below 1. Each says what it needs.
#pragma once

#include "requantize_rules.hpp"

namespace pq {

// v / 2^r, 0 <= r < 32, rounded; v > INT32_MIN. In two shifts, for half a divisor might not fit
// beside v.
template <Rounding mode>
PQ_INLINE std::int32_t shift_round_half(std::int32_t v, std::int32_t r) {
    static_assert(mode == Rounding::half_up || mode == Rounding::half_away_from_zero);
    const std::int32_t any = r != 0 ? 1 : 0;
    const std::int32_t below = mode == Rounding::half_up ? 0 : (v >> 31) & -any;
    const std::int32_t twice = (v + below) >> (r - any); // rounded down, with one bit to go
    return (twice >> any) + (twice & any);
}

// TwoStep without left shifts, multiplier > INT32_MIN: nothing overflows but acc + bias.
template <Rounding mode>
struct TwoStepRight {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const std::int64_t product =
                static_cast<std::int64_t>(biased(acc, c, fault)) * c.multiplier;
        const auto high = static_cast<std::int32_t>((product + (std::int64_t{1} << 30)) >> 31);
        const std::int32_t y = shift_round_half<mode>(high, c.shift_right);
        return clamped(y, c.lo, c.hi) + c.zero_point;
    }
};

// Shift, half up, by 33 or more to the right: half a divisor is a multiple of 2^32, and the lower
// half of the product decides nothing.
struct ShiftHigh {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        const std::int64_t product =
                static_cast<std::int64_t>(biased(acc, c, fault)) * c.multiplier;
        const auto high = static_cast<std::int32_t>(product >> 32);
        const std::int32_t y = (high + (1 << (c.shift_right - 33))) >> (c.shift_right - 32);
        return clamped(y, c.lo, c.hi) + c.zero_point;
    }
};

// TwoRound by 2^-31 or more, stored in 8 bits. Half less its last bit, added, rounds to the nearest
// with ties away from zero; and a first result that is kept from 2^31 gives the same second one.
template <bool single>
struct TwoRoundNarrow {
    template <typename Out>
    static PQ_INLINE std::int32_t apply(std::int32_t acc, const Constants& c,
                                        std::uint32_t& fault) {
        static_assert(narrow<Out>);
        const std::int32_t x = biased(acc, c, fault);
        std::int32_t whole = 0;
        if constexpr (single) {
            const float v = static_cast<float>(x) * c.factor;
            constexpr float most = 2147483520.0F; // 2^31 - 2^7
            const float away = v + __builtin_copysignf(0x1.FFFFFEp-2F, v);
            whole = static_cast<std::int32_t>(clamped(away, -most, most));
        } else {
            const double v = static_cast<double>(x) * c.real_factor;
            constexpr double most = 2147483647.0;
            const double away = v + __builtin_copysign(0x1.FFFFFFFFFFFFFp-2, v);
            whole = static_cast<std::int32_t>(clamped(away, -most, most));
        }
        const std::int32_t y =
                shift_round_half<Rounding::half_away_from_zero>(whole, c.shift_right);
        return clamped(y, c.lo, c.hi) + c.zero_point;
    }
};

} // namespace pq
