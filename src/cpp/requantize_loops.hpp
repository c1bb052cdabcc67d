// A rule over neighbouring accumulators, for three instruction sets, chosen at run time.
#pragma once

#include "requantize_rules.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

// Accumulators that a loop without branches works on: whole vectors on their way in and out.
constexpr std::size_t chunk_size = 128;
// Chunks have a multiple of that: what the narrowest integers in the widest vector are.
constexpr std::size_t vector_size = 64;

// Writes the lower 32 bits of (x · m + add) >> by for a chunk, by: 31 or 32.
inline void products_any(const std::int32_t* x, const std::int32_t* m, std::int64_t add, int by,
                         std::int32_t* cut, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        cut[i] = static_cast<std::int32_t>((static_cast<std::int64_t>(x[i]) * m[i] + add) >> by);
}

#if defined(__x86_64__)
// By hand, as nothing else is: CPUs multiply every other number of a vector as it is, where
// compilers widen both factors.
PQ_TARGET_256 inline void products_256(const std::int32_t* x, const std::int32_t* m,
                                       std::int64_t add, int by, std::int32_t* cut,
                                       std::size_t count) {
    const __m256i addend = _mm256_set1_epi64x(add);
    const __m128i down = _mm_cvtsi32_si128(by), up = _mm_cvtsi32_si128(32 - by);
    for (std::size_t i = 0; i < count; i += 8) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(m + i));
        const __m256i even = _mm256_mul_epi32(a, b);
        const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
        const __m256i both =
                _mm256_blend_epi32(_mm256_srl_epi64(_mm256_add_epi64(even, addend), down),
                                   _mm256_sll_epi64(_mm256_add_epi64(odd, addend), up), 0xAA);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(cut + i), both);
    }
}
#endif

// `first`: the channel of the first accumulator; those behind it have the same one if `uniform`,
// otherwise the next ones.
template <typename Rule, bool uniform, bool plain, typename Out>
PQ_INLINE void chunk(const Columns& columns, std::size_t first, const std::int32_t* __restrict acc,
                     Out* __restrict dst, std::size_t count, std::uint32_t& fault) {
    const Constants same = columns.at(first);
    std::array<std::int32_t, chunk_size> results;
    std::uint32_t faults = 0;
    if constexpr (Rule::multiplies) {
        std::array<std::int32_t, chunk_size> x, m, cut;
        for (std::size_t i = 0; i < count; ++i)
            x[i] = Rule::start(acc[i], uniform ? same : columns.at(first + i), faults);
        if (uniform) m.fill(same.multiplier);
        const auto* const factors = uniform ? m.data() : columns.multiplier + first;
#if defined(__x86_64__)
        if constexpr (!plain)
            products_256(x.data(), factors, Rule::add, Rule::by, cut.data(), count);
        else
#endif
            products_any(x.data(), factors, Rule::add, Rule::by, cut.data(), count);
        for (std::size_t i = 0; i < count; ++i) {
            const Constants c = uniform ? same : columns.at(first + i);
            results[i] = Rule::template apply<Out>(x[i], cut[i], c) + c.zero_point;
        }
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            const Constants c = uniform ? same : columns.at(first + i);
            const std::int32_t x = Rule::start(acc[i], c, faults);
            results[i] = Rule::template apply<Out>(x, c, faults) + c.zero_point;
        }
    }
    // Apart, for compilers choose one width of vectors for a loop.
    for (std::size_t i = 0; i < count; ++i)
        dst[i] = static_cast<Out>(results[i]);
    fault |= faults;
}

// Asks for what a later chunk reads or writes. The hardware's own prefetching ends with each page,
// which is half of the distance. Addresses behind the end may be asked for: nothing is read.
template <bool writes, typename T>
PQ_INLINE void prefetch(const T* start) {
    constexpr std::size_t line = 64, ahead = 2048;
    const auto first = reinterpret_cast<std::uintptr_t>(start) + ahead * sizeof(T);
    for (std::size_t at = 0; at < chunk_size * sizeof(T); at += line)
        __builtin_prefetch(reinterpret_cast<const void*>(first + at), writes);
}

// True when an accumulator left 32 bits (for Exact: or must be looked at again). Columns go on
// behind the last channel with the first ones again, far enough for one chunk.
template <typename Rule, bool uniform, bool plain, typename Out>
PQ_INLINE bool sweep(const Columns& columns, std::size_t channel, const std::int32_t* acc, Out* dst,
                     std::size_t count) {
    const std::size_t step = uniform ? 0 : chunk_size % columns.channels;
    std::uint32_t fault = 0;
    std::size_t i = 0;
    for (; i + chunk_size <= count; i += chunk_size) {
        prefetch<false>(acc + i);
        prefetch<true>(dst + i);
        chunk<Rule, uniform, plain>(columns, channel, acc + i, dst + i, chunk_size, fault);
        channel += step;
        if (channel >= columns.channels) channel -= columns.channels;
    }
    if (i == count) return fault != 0;
    // The last chunk is filled up with what is -1 after its bias: never at fault.
    std::array<std::int32_t, chunk_size> padded;
    std::array<Out, chunk_size> results;
    const std::size_t filled = (count - i + vector_size - 1) / vector_size * vector_size;
    for (std::size_t j = 0; j < filled; ++j)
        padded[j] = i + j < count ? acc[i + j] : ~columns.bias[uniform ? channel : channel + j];
    chunk<Rule, uniform, plain>(columns, channel, padded.data(), results.data(), filled, fault);
    std::copy_n(results.begin(), count - i, dst + i);
    return fault != 0;
}

#define PQ_SWEEP(LEVEL, TARGET, PLAIN)                                                             \
    template <typename Rule, bool uniform, typename Out>                                           \
    TARGET bool sweep_##LEVEL(const Columns& columns, std::size_t channel,                         \
                              const std::int32_t* acc, void* dst, std::size_t count) {             \
        return sweep<Rule, uniform, PLAIN>(columns, channel, acc, static_cast<Out*>(dst), count);  \
    }

PQ_SWEEP(512, PQ_TARGET_512, false)
PQ_SWEEP(256, PQ_TARGET_256, false)
PQ_SWEEP(any, , true)

#undef PQ_SWEEP

using Sweep = bool (*)(const Columns&, std::size_t channel, const std::int32_t* acc, void* dst,
                       std::size_t count);

struct Loops {
    Sweep each = nullptr; // neighbours belong to neighbouring channels
    Sweep same = nullptr; // to the same one
};

template <typename Rule, typename Out>
Loops loops() {
    return {widest(&sweep_512<Rule, false, Out>, &sweep_256<Rule, false, Out>,
                   &sweep_any<Rule, false, Out>),
            widest(&sweep_512<Rule, true, Out>, &sweep_256<Rule, true, Out>,
                   &sweep_any<Rule, true, Out>)};
}

} // namespace pq
