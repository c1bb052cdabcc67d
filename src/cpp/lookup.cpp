#include "lookup.hpp"

#include "wide.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

void lookup_any(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y,
                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        y[i] = table[x[i]];
}

#if defined(__x86_64__)
// A table of 256 bytes is four registers; the upper bit of a code says which two hold its entry.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void
lookup_vbmi(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
    constexpr std::size_t lanes = 64;
    const __m512i t0 = _mm512_loadu_si512(table);
    const __m512i t1 = _mm512_loadu_si512(table + lanes);
    const __m512i t2 = _mm512_loadu_si512(table + 2 * lanes);
    const __m512i t3 = _mm512_loadu_si512(table + 3 * lanes);
    for (std::size_t i = 0; i < count; i += lanes) {
        const std::size_t left = count - i;
        const __mmask64 mask = left >= lanes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        const __m512i codes = _mm512_maskz_loadu_epi8(mask, x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, codes, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, codes, t3);
        const __mmask64 is_high = _mm512_movepi8_mask(codes);
        _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_blend_epi8(is_high, low, high));
    }
}

// Sixteen tables of 16 bytes. A code whose upper half is another's gets its upper bit set, for
// which a shuffle gives 0.
PQ_TARGET_256 void lookup_avx2(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y,
                               std::size_t count) {
    constexpr std::size_t lanes = 32, half = 16;
    const __m256i upper = _mm256_set1_epi8(0x70);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        __m256i found = _mm256_setzero_si256();
        for (std::size_t k = 0; k < half; ++k) {
            const __m256i part = _mm256_broadcastsi128_si256(
                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + half * k)));
            const __m256i own = _mm256_set1_epi8(static_cast<char>(half * k));
            const __m256i at = _mm256_adds_epu8(_mm256_xor_si256(codes, own), upper);
            found = _mm256_or_si256(found, _mm256_shuffle_epi8(part, at));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), found);
    }
    lookup_any(table, x + i, y + i, count - i);
}
#endif

} // namespace

Lookup best_lookup() {
#if defined(__x86_64__)
    if (vector_bits() == 512 && __builtin_cpu_supports("avx512vbmi")) return &lookup_vbmi;
    if (vector_bits() >= 256) return &lookup_avx2;
#endif
    return &lookup_any;
}

} // namespace pq
