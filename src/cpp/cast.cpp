#include "cast.hpp"

#include "parallel.hpp"
#include "wide.hpp"

#include <cstring>

namespace pq {

namespace {

constexpr std::size_t grain = std::size_t{32} << 10U; // values of a piece for one thread

PQ_INLINE std::uint32_t bits_of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

PQ_INLINE float float_of(std::uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

constexpr std::uint32_t infinite = 0x7f800000; // of float32, without its sign

// The upper half of a float32.
struct Bf16 {
    static PQ_INLINE std::uint16_t narrowed(float value) {
        const std::uint32_t bits = bits_of(value);
        const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
        const std::uint32_t quiet = bits | 0x400000; // or the bits that make it NaN could be cut
        const bool is_nan = (bits & 0x7fffffff) > infinite;
        return static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16);
    }
    static PQ_INLINE float widened(std::uint16_t half) {
        return float_of(static_cast<std::uint32_t>(half) << 16);
    }
};

// 5 bits of exponent, 10 of mantissa.
struct F16 {
    static constexpr std::uint32_t rebias = 0x38000000; // 127 - 15 exponents

    static PQ_INLINE std::uint16_t narrowed(float value) {
        const std::uint32_t bits = bits_of(value), size = bits & 0x7fffffff;
        const std::uint32_t normal = (size - rebias + 0xfff + ((size >> 13) & 1)) >> 13;
        // The last bit of a number from 1/2 on is worth 2^-24, that of a subnormal half.
        const std::uint32_t small = bits_of(float_of(size) + 0.5F) - bits_of(0.5F);
        const std::uint32_t large = size > infinite ? 0x7e00 | ((size >> 13) & 0x3ff) : 0x7c00;
        const std::uint32_t found = size < rebias + 0x800000 ? small
                                    : size < 0x47800000      ? normal
                                                             : large;
        return static_cast<std::uint16_t>(found | ((bits >> 16) & 0x8000));
    }
    static PQ_INLINE float widened(std::uint16_t half) {
        const std::uint32_t size = half & 0x7fff;
        const std::uint32_t normal = (size << 13) + rebias + (size < 0x7c00 ? 0 : rebias);
        const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(size)) *
                                            5.9604644775390625e-8F); // 2^-24
        // A mask, for compilers put a multiplication that not all need behind a branch.
        const std::uint32_t is_small = 0 - static_cast<std::uint32_t>(size < 0x400);
        const std::uint32_t found = (small & is_small) | (normal & ~is_small);
        return float_of(found | (static_cast<std::uint32_t>(half & 0x8000) << 16));
    }
};

template <typename Type>
PQ_INLINE void narrow_all(const float* __restrict values, std::size_t count,
                          std::uint16_t* __restrict halves) {
    for (std::size_t i = 0; i < count; ++i)
        halves[i] = Type::narrowed(values[i]);
}

template <typename Type>
PQ_INLINE void widen_all(const std::uint16_t* __restrict halves, std::size_t count,
                         float* __restrict values) {
    for (std::size_t i = 0; i < count; ++i)
        values[i] = Type::widened(halves[i]);
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    template <typename Type>                                                                       \
    TARGET void narrow_##LEVEL(const float* values, std::size_t count, std::uint16_t* halves) {    \
        narrow_all<Type>(values, count, halves);                                                   \
    }                                                                                              \
    template <typename Type>                                                                       \
    TARGET void widen_##LEVEL(const std::uint16_t* halves, std::size_t count, float* values) {     \
        widen_all<Type>(halves, count, values);                                                    \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

template <typename Type>
void narrow_as(const float* values, std::size_t count, std::uint16_t* halves) {
    static const auto loop = widest(&narrow_512<Type>, &narrow_256<Type>, &narrow_any<Type>);
    in_parallel(count, grain, [&](std::size_t begin, std::size_t end) {
        loop(values + begin, end - begin, halves + begin);
    });
}

template <typename Type>
void widen_as(const std::uint16_t* halves, std::size_t count, float* values) {
    static const auto loop = widest(&widen_512<Type>, &widen_256<Type>, &widen_any<Type>);
    in_parallel(count, grain, [&](std::size_t begin, std::size_t end) {
        loop(halves + begin, end - begin, values + begin);
    });
}

} // namespace

void narrow(Half type, const float* values, std::size_t count, std::uint16_t* halves) {
    (type == Half::bf16 ? narrow_as<Bf16> : narrow_as<F16>)(values, count, halves);
}

void widen(Half type, const std::uint16_t* halves, std::size_t count, float* values) {
    (type == Half::bf16 ? widen_as<Bf16> : widen_as<F16>)(halves, count, values);
}

} // namespace pq
