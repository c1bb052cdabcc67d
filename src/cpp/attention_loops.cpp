#include "attention.hpp"
#include "power.hpp"
#include "quantize.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

constexpr std::size_t lanes = HeadMemory::lanes, quad = HeadMemory::quad;
constexpr std::size_t bytes_of_tile = lanes * quad; // of one step of four codes
#define PQ_INLINE_LAMBDA __attribute__((always_inline))

// Sums of two's complement wrap in between, and are right at the end.
std::int32_t wrapped(std::int32_t sum, int more) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                     static_cast<std::uint32_t>(more));
}

void code_scores_any(const std::uint8_t* keys, const std::int8_t* query, std::size_t quads,
                     std::size_t tiles, std::int32_t* sums) {
    std::fill_n(sums, tiles * lanes, 0);
    for (std::size_t tile = 0; tile < tiles; ++tile, sums += lanes)
        for (std::size_t at = 0; at < quads; ++at, keys += bytes_of_tile)
            for (std::size_t i = 0; i < bytes_of_tile; ++i)
                sums[i / quad] = wrapped(sums[i / quad], keys[i] * query[at * quad + i % quad]);
}

void code_context_any(const std::int8_t* values, const std::uint8_t* high, const std::uint8_t* low,
                      std::size_t blocks, std::size_t columns, std::int32_t* of_high,
                      std::int32_t* of_low) {
    std::fill_n(of_high, columns, 0);
    std::fill_n(of_low, columns, 0);
    for (std::size_t at = 0; at < blocks; ++at, high += quad, low += quad) {
        for (std::size_t i = 0; i < columns * quad; ++i) {
            const int value = *values++;
            of_high[i / quad] = wrapped(of_high[i / quad], value * high[i % quad]);
            of_low[i / quad] = wrapped(of_low[i / quad], value * low[i % quad]);
        }
    }
}

#if defined(__x86_64__)
PQ_INLINE std::int32_t four(const void* codes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, codes, sizeof bits);
    return bits;
}

PQ_TARGET_VNNI void code_scores_vnni(const std::uint8_t* keys, const std::int8_t* query,
                                     std::size_t quads, std::size_t tiles, std::int32_t* sums) {
    constexpr std::size_t most = 4; // tiles at once: sums wait for each other
    const std::size_t of_tile = quads * bytes_of_tile;
    std::size_t tile = 0;
    for (; tile + most <= tiles; tile += most, keys += most * of_tile) {
        __m512i acc[most] = {};
        for (std::size_t at = 0; at < quads; ++at) {
            const __m512i q = _mm512_set1_epi32(four(query + at * quad));
            for (std::size_t i = 0; i < most; ++i) {
                const __m512i k = _mm512_loadu_si512(keys + i * of_tile + at * bytes_of_tile);
                acc[i] = _mm512_dpbusd_epi32(acc[i], k, q);
            }
        }
        for (std::size_t i = 0; i < most; ++i)
            _mm512_storeu_si512(sums + (tile + i) * lanes, acc[i]);
    }
    for (; tile < tiles; ++tile, keys += of_tile) {
        __m512i acc = _mm512_setzero_si512();
        for (std::size_t at = 0; at < quads; ++at) {
            const __m512i q = _mm512_set1_epi32(four(query + at * quad));
            acc = _mm512_dpbusd_epi32(acc, _mm512_loadu_si512(keys + at * bytes_of_tile), q);
        }
        _mm512_storeu_si512(sums + tile * lanes, acc);
    }
}

template <std::size_t vectors>
PQ_TARGET_VNNI PQ_INLINE void
columns_vnni(const std::int8_t* values, const std::uint8_t* high, const std::uint8_t* low,
             std::size_t blocks, std::size_t stride, std::int32_t* of_high, std::int32_t* of_low) {
    __m512i highs[vectors] = {}, lows[vectors] = {};
    for (std::size_t at = 0; at < blocks; ++at, values += stride) {
        const __m512i h = _mm512_set1_epi32(four(high + at * quad));
        const __m512i l = _mm512_set1_epi32(four(low + at * quad));
        for (std::size_t i = 0; i < vectors; ++i) {
            const __m512i v = _mm512_loadu_si512(values + i * bytes_of_tile);
            highs[i] = _mm512_dpbusd_epi32(highs[i], h, v);
            lows[i] = _mm512_dpbusd_epi32(lows[i], l, v);
        }
    }
    for (std::size_t i = 0; i < vectors; ++i) {
        _mm512_storeu_si512(of_high + i * lanes, highs[i]);
        _mm512_storeu_si512(of_low + i * lanes, lows[i]);
    }
}

PQ_TARGET_VNNI void code_context_vnni(const std::int8_t* values, const std::uint8_t* high,
                                      const std::uint8_t* low, std::size_t blocks,
                                      std::size_t columns, std::int32_t* of_high,
                                      std::int32_t* of_low) {
    constexpr std::size_t most = 4;
    const std::size_t stride = columns * quad;
    std::size_t at = 0;
    for (; at + most * lanes <= columns; at += most * lanes)
        columns_vnni<most>(values + at * quad, high, low, blocks, stride, of_high + at,
                           of_low + at);
    for (; at < columns; at += lanes)
        columns_vnni<1>(values + at * quad, high, low, blocks, stride, of_high + at, of_low + at);
}

// acc + Σ of four u8 times s8: even and odd ones apart, as 16 bits, which cannot saturate.
PQ_TARGET_256 PQ_INLINE __m256i dot(__m256i acc, __m256i bytes, __m256i codes) {
    constexpr int byte = 8;
    const __m256i low = _mm256_set1_epi16(255);
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(bytes, low),
                                           _mm256_srai_epi16(_mm256_slli_epi16(codes, byte), byte));
    const __m256i odd =
            _mm256_madd_epi16(_mm256_srli_epi16(bytes, byte), _mm256_srai_epi16(codes, byte));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}

PQ_TARGET_256 PQ_INLINE __m256i of_memory(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

PQ_TARGET_256 PQ_INLINE void to_memory(std::int32_t* to, __m256i sums) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
}

PQ_TARGET_256 void code_scores_256(const std::uint8_t* keys, const std::int8_t* query,
                                   std::size_t quads, std::size_t tiles, std::int32_t* sums) {
    constexpr std::size_t half = bytes_of_tile / 2;
    for (std::size_t tile = 0; tile < tiles; ++tile, sums += lanes) {
        __m256i first = _mm256_setzero_si256(), second = first;
        for (std::size_t at = 0; at < quads; ++at, keys += bytes_of_tile) {
            const __m256i q = _mm256_set1_epi32(four(query + at * quad));
            first = dot(first, of_memory(keys), q);
            second = dot(second, of_memory(keys + half), q);
        }
        to_memory(sums, first);
        to_memory(sums + lanes / 2, second);
    }
}

PQ_TARGET_256 void code_context_256(const std::int8_t* values, const std::uint8_t* high,
                                    const std::uint8_t* low, std::size_t blocks,
                                    std::size_t columns, std::int32_t* of_high,
                                    std::int32_t* of_low) {
    constexpr std::size_t some = lanes / 2;
    for (std::size_t column = 0; column < columns; column += some) {
        const std::int8_t* from = values + column * quad;
        __m256i highs = _mm256_setzero_si256(), lows = highs;
        for (std::size_t at = 0; at < blocks; ++at, from += columns * quad) {
            const __m256i v = of_memory(from);
            highs = dot(highs, _mm256_set1_epi32(four(high + at * quad)), v);
            lows = dot(lows, _mm256_set1_epi32(four(low + at * quad)), v);
        }
        to_memory(of_high + column, highs);
        to_memory(of_low + column, lows);
    }
}
#endif

// y[i] = Σ by[t] · x[t · stride + i] of so many vectors, in the order of t.
template <typename Of, std::size_t vectors>
PQ_INLINE void add_rows(const float* x, const float* by, std::size_t count, std::size_t stride,
                        float* y) {
    constexpr std::size_t width = sizeof(typename Of::Vector) / sizeof(float);
    typename Of::Vector sums[vectors] = {};
    for (std::size_t t = 0; t < count; ++t, x += stride)
        for (std::size_t i = 0; i < vectors; ++i)
            sums[i] += *reinterpret_cast<const typename Of::Loose*>(x + i * width) * by[t];
    for (std::size_t i = 0; i < vectors; ++i)
        *reinterpret_cast<typename Of::Loose*>(y + i * width) = sums[i];
}

template <typename Of>
PQ_INLINE void scores_of(const float* keys, const float* query, std::size_t depth,
                         std::size_t tiles, float* sums) {
    constexpr std::size_t vectors = lanes * sizeof(float) / sizeof(typename Of::Vector);
    for (std::size_t tile = 0; tile < tiles; ++tile)
        add_rows<Of, vectors>(keys + tile * depth * lanes, query, depth, lanes,
                              sums + tile * lanes);
}

template <typename Of>
PQ_INLINE void context_of(const float* values, const float* shares, std::size_t count,
                          std::size_t columns, float* y) {
    constexpr std::size_t width = sizeof(typename Of::Vector) / sizeof(float), most = 4;
    std::size_t at = 0;
    for (; at + most * width <= columns; at += most * width)
        add_rows<Of, most>(values + at, shares, count, columns, y + at);
    for (; at < columns; at += width)
        add_rows<Of, 1>(values + at, shares, count, columns, y + at);
}

PQ_INLINE float powers_of(float* __restrict x, std::size_t count, float top) {
    float sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j)
            x[i + j] = power_of(x[i + j] - top);
        for (std::size_t j = 0; j < lanes; ++j)
            sums[j] += x[i + j];
    }
    for (std::size_t j = 0; i + j < count; ++j)
        sums[j] += x[i + j] = power_of(x[i + j] - top);
    float sum = 0;
    for (const float each : sums)
        sum += each;
    return sum;
}

PQ_INLINE float largest_of(const float* lane) {
    float top = lane[0];
    for (std::size_t j = 1; j < lanes; ++j)
        top = lane[j] > top ? lane[j] : top;
    return top;
}

// The nearest even whole number of a float below 2^22 is in the lowest bits.
PQ_INLINE std::uint32_t whole_bits(float x) {
    return __builtin_bit_cast(std::uint32_t, x + rounder);
}

PQ_INLINE bool code_row_of(const float* __restrict x, std::size_t count, float& scale,
                           std::int8_t* __restrict codes) {
    constexpr float finite = std::numeric_limits<float>::max();
    float most[lanes] = {};
    std::uint32_t beyond[lanes] = {};
    std::size_t i = 0;
    const auto look = [&](std::size_t j, float each) {
        const float size = each < 0 ? -each : each;
        most[j] = size > most[j] ? size : most[j];
        beyond[j] |= size <= finite ? 0U : 1U;
    };
    for (; i + lanes <= count; i += lanes)
        for (std::size_t j = 0; j < lanes; ++j)
            look(j, x[i + j]);
    for (std::size_t j = 0; i + j < count; ++j)
        look(j, x[i + j]);
    std::uint32_t any = 0;
    for (const std::uint32_t each : beyond)
        any |= each;
    const float top = largest_of(most);
    std::int32_t zero_point = 0;
    if (any != 0 || !scale_of_range(-top, top, true, scale, zero_point)) return false;
    const float by = scale;
    for (i = 0; i < count; ++i)
        codes[i] = static_cast<std::int8_t>(whole_bits(x[i] / by));
    return true;
}

template <typename Value>
PQ_INLINE float tops_of(std::size_t count, float* __restrict x, const Value& value) {
    float most[lanes];
    std::fill_n(most, lanes, -std::numeric_limits<float>::infinity());
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j)
            x[i + j] = value(i + j);
        for (std::size_t j = 0; j < lanes; ++j)
            most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
    }
    for (std::size_t j = 0; i + j < count; ++j) {
        x[i + j] = value(i + j);
        most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
    }
    return largest_of(most);
}

PQ_INLINE float code_tops_of(const std::int32_t* __restrict sums, std::int32_t shift,
                             const float* __restrict scales, float by, std::size_t count,
                             float* __restrict x) {
    return tops_of(count, x, [=](std::size_t t) PQ_INLINE_LAMBDA {
        return static_cast<float>(sums[t] - shift) * scales[t] * by;
    });
}

PQ_INLINE float plain_tops_of(float by, std::size_t count, float* __restrict x) {
    return tops_of(count, x, [=](std::size_t t) PQ_INLINE_LAMBDA { return x[t] * by; });
}

PQ_INLINE float caps_of(float cap, std::size_t count, float* __restrict x) {
    return tops_of(count, x,
                   [=](std::size_t t) PQ_INLINE_LAMBDA { return cap * tangent(x[t] / cap); });
}

PQ_INLINE float code_shares_of(float* __restrict x, const float* __restrict scales,
                               std::size_t count, std::uint8_t* __restrict high,
                               std::uint8_t* __restrict low) {
    constexpr float highest = 65535;
    const float most =
            tops_of(count, x, [=](std::size_t t) PQ_INLINE_LAMBDA { return x[t] * scales[t]; });
    const float per = highest / most;
    for (std::size_t t = 0; t < count; ++t) {
        const float exact = x[t] * per; // NaN of nothing times infinity is bounded, too
        const std::uint32_t bits = whole_bits(exact < highest ? exact : highest);
        high[t] = static_cast<std::uint8_t>(bits >> 8U);
        low[t] = static_cast<std::uint8_t>(bits);
    }
    return most;
}

#define PQ_LOOPS(LEVEL, TARGET, OF)                                                                \
    TARGET void scores_##LEVEL(const float* keys, const float* query, std::size_t depth,           \
                               std::size_t tiles, float* sums) {                                   \
        scores_of<OF>(keys, query, depth, tiles, sums);                                            \
    }                                                                                              \
    TARGET void context_##LEVEL(const float* values, const float* shares, std::size_t count,       \
                                std::size_t columns, float* y) {                                   \
        context_of<OF>(values, shares, count, columns, y);                                         \
    }                                                                                              \
    TARGET float powers_##LEVEL(float* x, std::size_t count, float top) {                          \
        return powers_of(x, count, top);                                                           \
    }                                                                                              \
    TARGET bool code_row_##LEVEL(const float* x, std::size_t count, float& scale,                  \
                                 std::int8_t* codes) {                                             \
        return code_row_of(x, count, scale, codes);                                                \
    }                                                                                              \
    TARGET float code_tops_##LEVEL(const std::int32_t* sums, std::int32_t shift,                   \
                                   const float* scales, float by, std::size_t count, float* x) {   \
        return code_tops_of(sums, shift, scales, by, count, x);                                    \
    }                                                                                              \
    TARGET float tops_##LEVEL(float by, std::size_t count, float* x) {                             \
        return plain_tops_of(by, count, x);                                                        \
    }                                                                                              \
    TARGET float caps_##LEVEL(float cap, std::size_t count, float* x) {                            \
        return caps_of(cap, count, x);                                                             \
    }                                                                                              \
    TARGET float code_shares_##LEVEL(float* x, const float* scales, std::size_t count,             \
                                     std::uint8_t* high, std::uint8_t* low) {                      \
        return code_shares_of(x, scales, count, high, low);                                        \
    }

PQ_LOOPS(512, PQ_TARGET_512, Of512)
PQ_LOOPS(256, PQ_TARGET_256, Of256)
PQ_LOOPS(any, , Of128)

#undef PQ_LOOPS

AttentionLoops best() {
    AttentionLoops loops{widest(&code_row_512, &code_row_256, &code_row_any),
                         widest(&code_tops_512, &code_tops_256, &code_tops_any),
                         widest(&tops_512, &tops_256, &tops_any),
                         widest(&caps_512, &caps_256, &caps_any),
                         widest(&code_shares_512, &code_shares_256, &code_shares_any),
                         &code_scores_any,
                         widest(&scores_512, &scores_256, &scores_any),
                         widest(&powers_512, &powers_256, &powers_any),
                         &code_context_any,
                         widest(&context_512, &context_256, &context_any)};
#if defined(__x86_64__)
    const bool is_wide = multiplies_bytes();
    if (vector_bits() != 0) {
        loops.code_scores = is_wide ? &code_scores_vnni : &code_scores_256;
        loops.code_context = is_wide ? &code_context_vnni : &code_context_256;
    }
#endif
    return loops;
}

} // namespace

const AttentionLoops& best_attention_loops() {
    static const AttentionLoops loops = best();
    return loops;
}

} // namespace pq
