#include "requantize_products.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

// One accumulator; faults gather in a sign bit, as they do in the vectors below.
template <Upper kept>
PQ_INLINE std::int32_t step_any(std::int32_t bias, std::int32_t multiplier, std::int32_t acc,
                                std::uint32_t& faults) {
    const auto a = static_cast<std::uint32_t>(acc), b = static_cast<std::uint32_t>(bias);
    const std::uint32_t x = a + b;
    faults |= (a ^ x) & (b ^ x);
    const std::int64_t p = static_cast<std::int64_t>(static_cast<std::int32_t>(x)) * multiplier;
    if constexpr (kept == Upper::doubled)
        return static_cast<std::int32_t>((p + (std::int64_t{1} << 30)) >> 31);
    const bool cut = kept == Upper::sticky && static_cast<std::uint32_t>(p) != 0;
    return static_cast<std::int32_t>(p >> 32) | static_cast<std::int32_t>(cut);
}

#if defined(__x86_64__)

// Every other lane's product, then those between. Their halves lie where they are wanted.
template <Upper kept>
PQ_TARGET_512 PQ_INLINE void step_512(__m512i b, __m512i m, __m512i a, std::int32_t* upper,
                                      __m512i& faults) {
    const __m512i x = _mm512_add_epi32(a, b);
    const __m512i left = _mm512_ternarylogic_epi32(a, x, b, 0x24); // (a ^ x) & (b ^ x)
    faults = _mm512_or_si512(faults, left);
    __m512i even = _mm512_mul_epi32(x, m);
    __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(m, 32));
    constexpr __mmask16 odds = 0xAAAA;
    if (kept == Upper::doubled) {
        const __m512i half = _mm512_set1_epi64(1 << 30);
        even = _mm512_srli_epi64(_mm512_add_epi64(even, half), 31);
        odd = _mm512_slli_epi64(_mm512_add_epi64(odd, half), 1);
        _mm512_storeu_si512(upper, _mm512_mask_mov_epi32(even, odds, odd));
        return;
    }
    __m512i high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), odds, odd);
    if (kept == Upper::sticky) {
        const __m512i low = _mm512_mask_mov_epi32(even, odds, _mm512_slli_epi64(odd, 32));
        const __mmask16 cut = _mm512_test_epi32_mask(low, low);
        high = _mm512_mask_or_epi32(high, cut, high, _mm512_set1_epi32(1));
    }
    _mm512_storeu_si512(upper, high);
}

template <Upper kept>
PQ_TARGET_256 PQ_INLINE void step_256(__m256i b, __m256i m, __m256i a, std::int32_t* upper,
                                      __m256i& faults) {
    const __m256i x = _mm256_add_epi32(a, b);
    const __m256i left = _mm256_and_si256(_mm256_xor_si256(a, x), _mm256_xor_si256(b, x));
    faults = _mm256_or_si256(faults, left);
    __m256i even = _mm256_mul_epi32(x, m);
    __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(m, 32));
    constexpr int odds = 0xAA;
    auto* const to = reinterpret_cast<__m256i*>(upper);
    if (kept == Upper::doubled) {
        const __m256i half = _mm256_set1_epi64x(1 << 30);
        even = _mm256_srli_epi64(_mm256_add_epi64(even, half), 31);
        odd = _mm256_slli_epi64(_mm256_add_epi64(odd, half), 1);
        _mm256_storeu_si256(to, _mm256_blend_epi32(even, odd, odds));
        return;
    }
    __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, odds);
    if (kept == Upper::sticky) {
        const __m256i low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), odds);
        const __m256i whole = _mm256_cmpeq_epi32(low, _mm256_setzero_si256()); // -1 where true
        high = _mm256_or_si256(high, _mm256_add_epi32(whole, _mm256_set1_epi32(1)));
    }
    _mm256_storeu_si256(to, high);
}

template <Upper kept, bool uniform>
PQ_TARGET_512 bool run_512(const Place& place, const std::int32_t* acc, std::int32_t* upper,
                           std::size_t count) {
    const Columns& all = place.columns;
    const __m512i bias = _mm512_set1_epi32(all.bias[place.channel]);
    const __m512i multiplier = _mm512_set1_epi32(all.multiplier[place.channel]);
    __m512i faults = _mm512_setzero_si512();
    Walk walk(place, uniform);
    for (std::size_t i = 0; i < count; i += chunk_size, walk.next()) {
        prefetch<false>(acc + i);
        for (std::size_t j = 0; j < chunk_size; j += 16) {
            const std::size_t c = walk.channel + j;
            const __m512i b = uniform ? bias : _mm512_loadu_si512(all.bias + c);
            const __m512i m = uniform ? multiplier : _mm512_loadu_si512(all.multiplier + c);
            step_512<kept>(b, m, _mm512_loadu_si512(acc + i + j), upper + i + j, faults);
        }
    }
    return _mm512_movepi32_mask(faults) != 0;
}

PQ_TARGET_256 PQ_INLINE __m256i load_256(const std::int32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

template <Upper kept, bool uniform>
PQ_TARGET_256 bool run_256(const Place& place, const std::int32_t* acc, std::int32_t* upper,
                           std::size_t count) {
    const Columns& all = place.columns;
    const __m256i bias = _mm256_set1_epi32(all.bias[place.channel]);
    const __m256i multiplier = _mm256_set1_epi32(all.multiplier[place.channel]);
    __m256i faults = _mm256_setzero_si256();
    Walk walk(place, uniform);
    for (std::size_t i = 0; i < count; i += chunk_size, walk.next()) {
        prefetch<false>(acc + i);
        for (std::size_t j = 0; j < chunk_size; j += 8) {
            const std::size_t c = walk.channel + j;
            const __m256i b = uniform ? bias : load_256(all.bias + c);
            const __m256i m = uniform ? multiplier : load_256(all.multiplier + c);
            step_256<kept>(b, m, load_256(acc + i + j), upper + i + j, faults);
        }
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(faults)) != 0;
}

#endif

template <Upper kept, bool uniform>
bool run_any(const Place& place, const std::int32_t* acc, std::int32_t* upper, std::size_t count) {
    const Columns& all = place.columns;
    std::uint32_t faults = 0;
    Walk walk(place, uniform);
    for (std::size_t i = 0; i < count; i += chunk_size, walk.next()) {
        for (std::size_t j = 0; j < chunk_size; ++j) {
            const std::size_t c = walk.channel + (uniform ? 0 : j);
            upper[i + j] = step_any<kept>(all.bias[c], all.multiplier[c], acc[i + j], faults);
        }
    }
    return (faults >> 31) != 0;
}

// Chunks are whole in `run`: the last is filled up with zeros, to which a bias can be added.
template <Products run, bool uniform>
bool padded(const Place& place, const std::int32_t* acc, std::int32_t* upper, std::size_t count) {
    const std::size_t rest = count % chunk_size, whole = count - rest;
    bool fault = run(place, acc, upper, whole);
    if (rest > 0) {
        std::array<std::int32_t, chunk_size> last{};
        std::copy_n(acc + whole, rest, last.begin());
        const std::size_t channel = place.channel + (uniform ? 0 : whole);
        const Place there{place.columns, channel % place.channels, place.channels};
        fault |= run(there, last.data(), upper + whole, chunk_size);
    }
    return fault;
}

template <Upper kept>
BothProducts products_keeping() {
#if defined(__x86_64__)
    switch (vector_bits()) {
    case 512:
        return {&padded<&run_512<kept, false>, false>, &padded<&run_512<kept, true>, true>};
    case 256:
        return {&padded<&run_256<kept, false>, false>, &padded<&run_256<kept, true>, true>};
    default:
        break;
    }
#endif
    return {&padded<&run_any<kept, false>, false>, &padded<&run_any<kept, true>, true>};
}

} // namespace

BothProducts products(Upper kept) {
    switch (kept) {
    case Upper::cut:
        return products_keeping<Upper::cut>();
    case Upper::sticky:
        return products_keeping<Upper::sticky>();
    case Upper::doubled:
        break;
    }
    return products_keeping<Upper::doubled>();
}

} // namespace pq
