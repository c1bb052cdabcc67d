#include "coded_weights.hpp"

#include "quantize.hpp"
#include "wide.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

constexpr std::size_t lanes = CodedWeights::lanes, most_rows = CodedWeights::most_rows;
constexpr std::size_t group = 4; // codes of a column that lie together

// Sums of a tile, exact: (rows, lanes) of rows of `groups` times four codes.
using Sums = void (*)(const std::int8_t* tile, std::size_t groups, std::size_t rows,
                      const std::uint8_t* codes, std::int32_t* sums);

void sums_any(const std::int8_t* tile, std::size_t groups, std::size_t rows,
              const std::uint8_t* codes, std::int32_t* sums) {
    for (std::size_t row = 0; row < rows; ++row) {
        const std::uint8_t* const own = codes + row * groups * group;
        std::int32_t* const to = sums + row * lanes;
        std::fill_n(to, lanes, 0);
        for (std::size_t at = 0; at < groups; ++at)
            for (std::size_t lane = 0; lane < lanes; ++lane)
                for (std::size_t k = 0; k < group; ++k)
                    to[lane] += own[at * group + k] * tile[(at * lanes + lane) * group + k];
    }
}

#if defined(__x86_64__)
PQ_INLINE std::int32_t four(const std::uint8_t* codes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, codes, sizeof bits);
    return bits;
}

// By hand: what multiplies bytes adds four products at once, which no plain loop says.
template <std::size_t rows>
PQ_TARGET_VNNI PQ_INLINE void sums_of_bytes(const std::int8_t* tile, std::size_t groups,
                                            const std::uint8_t* codes, std::int32_t* sums) {
    constexpr std::size_t width = sizeof(__m512i), vectors = lanes * group / width;
    __m512i acc[rows][vectors];
    for (auto& row : acc)
        for (auto& each : row)
            each = _mm512_setzero_si512();
    for (std::size_t at = 0; at < groups; ++at, tile += lanes * group) {
        __m512i weights[vectors];
        for (std::size_t v = 0; v < vectors; ++v)
            weights[v] = _mm512_loadu_si512(tile + v * width);
        for (std::size_t row = 0; row < rows; ++row) {
            const __m512i x = _mm512_set1_epi32(four(codes + (row * groups + at) * group));
            for (std::size_t v = 0; v < vectors; ++v)
                acc[row][v] = _mm512_dpbusd_epi32(acc[row][v], x, weights[v]);
        }
    }
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t v = 0; v < vectors; ++v)
            _mm512_storeu_si512(sums + row * lanes + v * (width / group), acc[row][v]);
}

PQ_TARGET_VNNI void sums_vnni(const std::int8_t* tile, std::size_t groups, std::size_t rows,
                              const std::uint8_t* codes, std::int32_t* sums) {
    if (rows == most_rows) return sums_of_bytes<most_rows>(tile, groups, codes, sums);
    for (std::size_t row = 0; row < rows; ++row)
        sums_of_bytes<1>(tile, groups, codes + row * groups * group, sums + row * lanes);
}

// Bytes multiplied in pairs saturate here; as 16 bits, even and odd ones apart, they do not.
template <std::size_t rows>
PQ_TARGET_256 PQ_INLINE void sums_of_pairs(const std::int8_t* tile, std::size_t groups,
                                           const std::uint8_t* codes, std::int32_t* sums) {
    constexpr std::size_t width = sizeof(__m256i), vectors = 2;
    constexpr std::int32_t even_bytes = 0x00FF00FF;
    constexpr int byte = 8;
    for (std::size_t first = 0; first < lanes * group; first += vectors * width) {
        __m256i acc[rows][vectors];
        for (auto& row : acc)
            for (auto& each : row)
                each = _mm256_setzero_si256();
        for (std::size_t at = 0; at < groups; ++at) {
            const std::int8_t* const place = tile + at * lanes * group + first;
            __m256i even[vectors], odd[vectors];
            for (std::size_t v = 0; v < vectors; ++v) {
                const __m256i both =
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(place + v * width));
                even[v] = _mm256_srai_epi16(_mm256_slli_epi16(both, byte), byte);
                odd[v] = _mm256_srai_epi16(both, byte);
            }
            for (std::size_t row = 0; row < rows; ++row) {
                const std::int32_t x = four(codes + (row * groups + at) * group);
                const __m256i x_even = _mm256_set1_epi32(x & even_bytes);
                const __m256i x_odd = _mm256_set1_epi32((x >> byte) & even_bytes);
                for (std::size_t v = 0; v < vectors; ++v) {
                    const __m256i pair = _mm256_add_epi32(_mm256_madd_epi16(x_even, even[v]),
                                                          _mm256_madd_epi16(x_odd, odd[v]));
                    acc[row][v] = _mm256_add_epi32(acc[row][v], pair);
                }
            }
        }
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t v = 0; v < vectors; ++v)
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + row * lanes +
                                                               (first + v * width) / group),
                                    acc[row][v]);
    }
}

PQ_TARGET_256 void sums_256(const std::int8_t* tile, std::size_t groups, std::size_t rows,
                            const std::uint8_t* codes, std::int32_t* sums) {
    if (rows == most_rows) return sums_of_pairs<most_rows>(tile, groups, codes, sums);
    for (std::size_t row = 0; row < rows; ++row)
        sums_of_pairs<1>(tile, groups, codes + row * groups * group, sums + row * lanes);
}
#endif

Sums best_sums() {
#if defined(__x86_64__)
    if (multiplies_bytes()) return &sums_vnni;
    return widest<Sums>(&sums_256, &sums_256, &sums_any);
#else
    return &sums_any;
#endif
}

PQ_INLINE void add_scaled(const std::int32_t* __restrict sums, const std::int32_t* __restrict whole,
                          const float* __restrict scales, float scale, std::int32_t zero_point,
                          float* __restrict out) {
    for (std::size_t i = 0; i < lanes; ++i)
        out[i] += static_cast<float>(sums[i] - zero_point * whole[i]) * (scale * scales[i]);
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET void add_scaled_##LEVEL(const std::int32_t* sums, const std::int32_t* whole,            \
                                   const float* scales, float scale, std::int32_t zero_point,      \
                                   float* out) {                                                   \
        add_scaled(sums, whole, scales, scale, zero_point, out);                                   \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

std::size_t up_to(std::size_t count, std::size_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

} // namespace

CodedWeights::CodedWeights(const std::int8_t* codes, const float* scales, std::size_t columns,
                           std::size_t inner)
    : inner_(inner), tiles_(up_to(columns, lanes) * up_to(inner, group)),
      scales_(up_to(columns, lanes)), sums_(up_to(columns, lanes)) {
    std::copy_n(scales, columns, scales_.begin());
    const std::size_t groups = up_to(inner, group) / group;
    for (std::size_t column = 0; column < columns; ++column) {
        for (std::size_t k = 0; k < inner; ++k) {
            const std::int8_t code = codes[column * inner + k];
            const std::size_t of_group = column / lanes * groups + k / group;
            tiles_[(of_group * lanes + column % lanes) * group + k % group] = code;
            sums_[column] += code;
        }
    }
}

std::size_t CodedWeights::row_size() const {
    return up_to(inner_, group);
}

void CodedWeights::add_products(std::size_t rows, const float* const* in, float* const* out,
                                std::uint8_t* codes) const {
    static const Sums sums_of = best_sums();
    static const auto add = widest(&add_scaled_512, &add_scaled_256, &add_scaled_any);
    const std::size_t groups = row_size() / group;
    std::array<float, most_rows> scales{};
    std::array<std::int32_t, most_rows> points{};
    for (std::size_t row = 0; row < rows; ++row) {
        float lo = 0, hi = 0;
        ranges(in[row], 1, inner_, &lo, &hi);
        const bool is_finite = scale_of_range(lo, hi, false, scales[row], points[row]);
        if (!is_finite) scales[row] = std::numeric_limits<float>::quiet_NaN();
        quantize(in[row], 1, inner_, &scales[row], &points[row], codes + row * row_size());
    }
    std::array<std::int32_t, most_rows * lanes> sums;
    for (std::size_t column = 0; column < scales_.size(); column += lanes) {
        sums_of(&tiles_[column * groups * group], groups, rows, codes, sums.data());
        for (std::size_t row = 0; row < rows; ++row)
            add(&sums[row * lanes], &sums_[column], &scales_[column], scales[row], points[row],
                out[row] + column);
    }
}

} // namespace pq
