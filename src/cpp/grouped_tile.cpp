#include "grouped_tile.hpp"

#include "wide.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

constexpr std::size_t lanes = GroupedTile::lanes, quad = 4;
constexpr std::size_t bytes_of_step = lanes * quad;
constexpr std::size_t most_rows = 4; // which share what is read of weights

// One group of weights, and what rows of codes are multiplied with it.
struct Group {
    const std::uint8_t* wei;
    std::size_t steps;
    const float* scales;
    const std::uint8_t* points; // null: sums begin with their share, `first`
    const std::int32_t* whole;
    const std::int8_t* src; // rows, which are `stride` apart
    std::size_t rows, stride;
    std::int32_t first[most_rows];
    std::int32_t totals[most_rows], zero_points[most_rows];
    bool has_zero_points, is_by_group;
    float own[most_rows]; // scales of rows, where each has one of its own for the group
    float* values;        // (rows, lanes)
};

using Sums = std::int32_t[most_rows][lanes];

template <bool are_nibbles>
PQ_INLINE void sums_any(const Group& group, Sums& to) {
    for (std::size_t row = 0; row < group.rows; ++row) {
        std::int32_t* const sums = to[row];
        const std::int8_t* x = group.src + row * group.stride;
        const std::uint8_t* wei = group.wei;
        std::fill_n(sums, lanes, group.first[row]);
        for (std::size_t at = 0; at < group.steps; ++at, wei += bytes_of_step) {
            for (std::size_t i = 0; i < bytes_of_step; ++i) {
                const std::size_t k = i % quad;
                int more = 0;
                if constexpr (are_nibbles)
                    more = (wei[i] & 15) * x[k] + (wei[i] >> 4) * x[k + quad];
                else
                    more = wei[i] * x[k];
                std::int32_t& sum = sums[i / quad]; // it wraps in between, as the others do
                sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                                static_cast<std::uint32_t>(more));
            }
            x += are_nibbles ? 2 * quad : quad;
        }
    }
}

#if defined(__x86_64__)
PQ_INLINE std::int32_t four(const std::int8_t* codes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, codes, sizeof bits);
    return bits;
}

// Weights that come next are fetched while these are multiplied: what a CPU fetches by itself ends
// with a page, and is late where several rows are multiplied.
constexpr std::size_t ahead = 8192;

constexpr std::size_t bytes_of_vnni = sizeof(__m512i);
// Aligned as their elements are.
#define PQ_VECTOR(ELEMENT, BYTES)                                                                  \
    ELEMENT __attribute__((vector_size(BYTES), aligned(alignof(ELEMENT)), may_alias))
using Floats = PQ_VECTOR(float, bytes_of_vnni);
using Whole = PQ_VECTOR(std::int32_t, bytes_of_vnni);
using Wrapping = PQ_VECTOR(std::uint32_t, bytes_of_vnni);
#undef PQ_VECTOR

// Bytes of weights are the unsigned ones of a product, so that halves of bytes need no more than
// to be taken apart.
template <std::size_t rows, bool are_nibbles>
PQ_TARGET_VNNI PQ_INLINE void sums_of_rows(const Group& group, Sums& sums) {
    constexpr std::size_t width = bytes_of_vnni, vectors = bytes_of_step / width;
    const __m512i low = _mm512_set1_epi8(15);
    __m512i acc[vectors][rows];
    for (auto& each : acc)
        for (std::size_t row = 0; row < rows; ++row)
            each[row] = _mm512_set1_epi32(group.first[row]);
    const std::uint8_t* wei = group.wei;
    const std::int8_t* src = group.src;
    const auto add = [&](__m512i(&to)[rows], __m512i weights,
                         const std::int8_t* codes) PQ_TARGET_VNNI {
        for (std::size_t row = 0; row < rows; ++row) {
            const __m512i x = _mm512_set1_epi32(four(codes + row * group.stride));
            to[row] = _mm512_dpbusd_epi32(to[row], weights, x);
        }
    };
    for (std::size_t at = 0; at < group.steps; ++at, wei += bytes_of_step) {
        for (std::size_t v = 0; v < vectors; ++v) {
            __builtin_prefetch(wei + v * width + ahead);
            const __m512i both = _mm512_loadu_si512(wei + v * width);
            add(acc[v], are_nibbles ? _mm512_and_si512(both, low) : both, src);
            if constexpr (are_nibbles)
                add(acc[v], _mm512_and_si512(_mm512_srli_epi16(both, 4), low), src + quad);
        }
        src += are_nibbles ? 2 * quad : quad;
    }
    for (std::size_t v = 0; v < vectors; ++v)
        for (std::size_t row = 0; row < rows; ++row)
            _mm512_storeu_si512(&sums[row][v * (width / quad)], acc[v][row]);
}

template <bool are_nibbles>
PQ_TARGET_VNNI PQ_INLINE void sums_vnni(const Group& group, Sums& sums) {
    if (group.rows == most_rows) return sums_of_rows<most_rows, are_nibbles>(group, sums);
    sums_of_rows<most_rows - 1, are_nibbles>(group, sums);
}

// All columns of one row or two, and all groups: sums of a group and of floats stay in registers.
template <std::size_t rows, bool are_nibbles>
PQ_TARGET_VNNI PQ_INLINE void few_rows_vnni(const GroupedTile& tile, const CodeRows& src,
                                            std::size_t row, float* values) {
    constexpr std::size_t width = bytes_of_vnni, vectors = bytes_of_step / width;
    constexpr std::size_t columns = width / quad, chains = 2;
    const __m512i low = _mm512_set1_epi8(15);
    const std::size_t stride = tile.steps * tile.codes_of_step();
    const std::uint8_t* wei = tile.codes;
    Floats sums[rows][vectors] = {};
    for (std::size_t at = 0; at < tile.groups; ++at) {
        const std::int32_t* const totals = src.totals + at * src.rows + row;
        const std::int8_t* codes = src.codes + (at * src.rows + row) * stride;
        // Of even and odd steps apart: additions wait for each other.
        __m512i acc[chains][rows][vectors];
        for (std::size_t i = 0; i < rows; ++i) {
            const std::int32_t first = tile.points == nullptr ? -tile.point * totals[i] : 0;
            for (std::size_t v = 0; v < vectors; ++v) {
                acc[0][i][v] = _mm512_set1_epi32(first);
                acc[1][i][v] = _mm512_setzero_si512();
            }
        }
        const auto add = [&](__m512i(&to)[rows][vectors], std::size_t v, __m512i weights,
                             const std::int8_t* from) PQ_TARGET_VNNI {
            for (std::size_t i = 0; i < rows; ++i) {
                const __m512i x = _mm512_set1_epi32(four(from + i * stride));
                to[i][v] = _mm512_dpbusd_epi32(to[i][v], weights, x);
            }
        };
        const auto add_step = [&](__m512i(&even)[rows][vectors],
                                  __m512i(&odd)[rows][vectors]) PQ_TARGET_VNNI {
            for (std::size_t v = 0; v < vectors; ++v) {
                if constexpr (are_nibbles) __builtin_prefetch(wei + v * width + ahead);
                const __m512i both = _mm512_loadu_si512(wei + v * width);
                add(even, v, are_nibbles ? _mm512_and_si512(both, low) : both, codes);
                if constexpr (are_nibbles) {
                    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
                    add(odd, v, high, codes + quad);
                }
            }
            wei += bytes_of_step;
            codes += are_nibbles ? 2 * quad : quad;
        };
        std::size_t step = 0;
        for (; step + chains <= tile.steps; step += chains) {
            add_step(acc[0], acc[1]);
            add_step(acc[1], acc[0]);
        }
        if (step < tile.steps) add_step(acc[0], acc[1]);
        const std::size_t part = (src.parts > 1 ? at * src.rows : 0) + row;
        for (std::size_t v = 0; v < vectors; ++v) {
            const std::size_t column = at * lanes + v * columns;
            const auto& scales = *reinterpret_cast<const Floats*>(tile.scales + column);
            for (std::size_t i = 0; i < rows; ++i) {
                const __m512i both = _mm512_add_epi32(acc[0][i][v], acc[1][i][v]);
                auto whole = reinterpret_cast<Wrapping>(both);
                if (tile.points != nullptr) {
                    const auto* const from = reinterpret_cast<const __m128i*>(tile.points + column);
                    const __m512i points = _mm512_cvtepu8_epi32(_mm_loadu_si128(from));
                    const auto total = static_cast<std::uint32_t>(totals[i]);
                    whole -= reinterpret_cast<Wrapping>(points) * total;
                }
                if (src.points != nullptr) {
                    const auto& own = *reinterpret_cast<const Wrapping*>(tile.whole + column);
                    whole -= own * static_cast<std::uint32_t>(src.points[part + i]);
                }
                const auto exact = reinterpret_cast<Whole>(whole);
                Floats value = __builtin_convertvector(exact, Floats) * scales;
                if (src.parts > 1) value *= src.scales[part + i];
                sums[i][v] += value;
            }
        }
    }
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t v = 0; v < vectors; ++v)
            std::memcpy(values + i * lanes + v * columns, &sums[i][v], width);
}

// Halves of bytes multiplied in pairs stay far below 16 bits. Whole ones do not: even and odd ones
// are multiplied apart, as 16 bits.
template <bool are_nibbles>
PQ_TARGET_256 PQ_INLINE void sums_256(const Group& group, Sums& to) {
    constexpr std::size_t width = sizeof(__m256i), vectors = 4;
    constexpr int byte = 8;
    const __m256i low = _mm256_set1_epi8(are_nibbles ? 15 : 0), ones = _mm256_set1_epi16(1);
    const __m256i even_bytes = _mm256_set1_epi16(255);
    for (std::size_t row = 0; row < group.rows; ++row) {
        for (std::size_t first = 0; first < bytes_of_step; first += vectors * width) {
            __m256i acc[vectors];
            for (auto& each : acc)
                each = _mm256_set1_epi32(group.first[row]);
            const std::uint8_t* wei = group.wei + first;
            const std::int8_t* src = group.src + row * group.stride;
            for (std::size_t at = 0; at < group.steps; ++at, wei += bytes_of_step) {
                const __m256i x = _mm256_set1_epi32(four(src));
                const __m256i next = _mm256_set1_epi32(are_nibbles ? four(src + quad) : 0);
                const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, byte), byte);
                const __m256i x_odd = _mm256_srai_epi16(x, byte);
                for (std::size_t v = 0; v < vectors; ++v) {
                    const __m256i both =
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wei + v * width));
                    __m256i sum;
                    if constexpr (are_nibbles) {
                        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
                        const __m256i pairs = _mm256_add_epi16(
                                _mm256_maddubs_epi16(_mm256_and_si256(both, low), x),
                                _mm256_maddubs_epi16(high, next));
                        sum = _mm256_madd_epi16(pairs, ones);
                    } else {
                        sum = _mm256_add_epi32(
                                _mm256_madd_epi16(_mm256_and_si256(both, even_bytes), x_even),
                                _mm256_madd_epi16(_mm256_srli_epi16(both, byte), x_odd));
                    }
                    acc[v] = _mm256_add_epi32(acc[v], sum);
                }
                src += are_nibbles ? 2 * quad : quad;
            }
            for (std::size_t v = 0; v < vectors; ++v)
                _mm256_storeu_si256(
                        reinterpret_cast<__m256i*>(&to[row][(first + v * width) / quad]), acc[v]);
        }
    }
}

// The same, where four products of bytes are added to 32 bits at once.
template <bool are_nibbles>
PQ_TARGET_256_VNNI PQ_INLINE void sums_256_vnni(const Group& group, Sums& to) {
    constexpr std::size_t width = sizeof(__m256i), vectors = bytes_of_step / width;
    const __m256i low = _mm256_set1_epi8(15);
    for (std::size_t row = 0; row < group.rows; ++row) {
        __m256i acc[vectors];
        for (auto& each : acc)
            each = _mm256_set1_epi32(group.first[row]);
        const std::uint8_t* wei = group.wei;
        const std::int8_t* src = group.src + row * group.stride;
        for (std::size_t at = 0; at < group.steps; ++at, wei += bytes_of_step) {
            const __m256i x = _mm256_set1_epi32(four(src));
            const __m256i next = _mm256_set1_epi32(are_nibbles ? four(src + quad) : 0);
            for (std::size_t v = 0; v < vectors; ++v) {
                const __m256i both =
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wei + v * width));
                const __m256i first = are_nibbles ? _mm256_and_si256(both, low) : both;
                acc[v] = _mm256_dpbusd_avx_epi32(acc[v], first, x);
                if constexpr (are_nibbles) {
                    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
                    acc[v] = _mm256_dpbusd_avx_epi32(acc[v], high, next);
                }
            }
            src += are_nibbles ? 2 * quad : quad;
        }
        for (std::size_t v = 0; v < vectors; ++v)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(&to[row][v * (width / quad)]), acc[v]);
    }
}
#endif

// Whole numbers wrap in between, and are right at the end.
template <bool has_points, bool has_zero_points, bool is_by_group>
PQ_INLINE void add_scaled(const Group& group, std::size_t row, const std::int32_t* __restrict sums,
                          float* __restrict values) {
    const auto total = static_cast<std::uint32_t>(group.totals[row]);
    const auto zero_point = static_cast<std::uint32_t>(group.zero_points[row]);
    const float own = group.own[row];
    for (std::size_t i = 0; i < lanes; ++i) {
        auto acc = static_cast<std::uint32_t>(sums[i]);
        if constexpr (has_points) acc -= group.points[i] * total;
        if constexpr (has_zero_points)
            acc -= static_cast<std::uint32_t>(group.whole[i]) * zero_point;
        float value = static_cast<float>(static_cast<std::int32_t>(acc)) * group.scales[i];
        if constexpr (is_by_group) value *= own;
        values[i] += value;
    }
}

template <bool has_points, bool has_zero_points>
PQ_INLINE void finish_rows(const Group& group, const Sums& sums) {
    for (std::size_t row = 0; row < group.rows; ++row) {
        float* const values = group.values + row * lanes;
        if (group.is_by_group)
            add_scaled<has_points, has_zero_points, true>(group, row, sums[row], values);
        else
            add_scaled<has_points, has_zero_points, false>(group, row, sums[row], values);
    }
}

PQ_INLINE void finish(const Group& group, const Sums& sums) {
    const bool has_points = group.points != nullptr;
    if (group.has_zero_points)
        return has_points ? finish_rows<true, true>(group, sums)
                          : finish_rows<false, true>(group, sums);
    has_points ? finish_rows<true, false>(group, sums) : finish_rows<false, false>(group, sums);
}

// The group of a tile at its place, for rows from one on.
PQ_INLINE Group group_of(const GroupedTile& tile, const CodeRows& src, std::size_t at,
                         std::size_t row, std::size_t rows) {
    const std::size_t first = at * lanes, own = at * src.rows + row;
    const std::size_t part = (src.parts > 1 ? at * src.rows : 0) + row;
    Group group;
    group.wei = tile.codes + at * tile.steps * bytes_of_step;
    group.steps = tile.steps;
    group.scales = tile.scales + first;
    group.points = tile.points == nullptr ? nullptr : tile.points + first;
    group.whole = tile.whole == nullptr ? nullptr : tile.whole + first;
    group.rows = rows;
    group.stride = tile.steps * tile.codes_of_step();
    group.src = src.codes + own * group.stride;
    group.has_zero_points = src.points != nullptr;
    group.is_by_group = src.parts > 1;
    for (std::size_t i = 0; i < rows; ++i) {
        group.totals[i] = src.totals[own + i];
        group.first[i] = tile.points == nullptr ? -tile.point * group.totals[i] : 0;
        group.zero_points[i] = group.has_zero_points ? src.points[part + i] : 0;
        group.own[i] = src.scales[part + i];
    }
    return group;
}

#define PQ_PRODUCTS(LEVEL, TARGET)                                                                 \
    template <bool are_nibbles>                                                                    \
    TARGET void tile_of_##LEVEL(const GroupedTile& tile, const CodeRows& src, std::size_t begin,   \
                                std::size_t end, float* values) {                                  \
        Sums sums;                                                                                 \
        for (std::size_t at = 0; at < tile.groups; ++at) {                                         \
            for (std::size_t row = begin; row < end; row += most_rows) {                           \
                Group group = group_of(tile, src, at, row, std::min(end - row, most_rows));        \
                group.values = values + (row - begin) * lanes;                                     \
                sums_##LEVEL<are_nibbles>(group, sums);                                            \
                finish(group, sums);                                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TARGET void tile_##LEVEL(const GroupedTile& tile, const CodeRows& src, std::size_t begin,      \
                             std::size_t end, float* values) {                                     \
        std::fill_n(values, (end - begin) * lanes, 0.0f);                                          \
        if (tile.are_nibbles) return tile_of_##LEVEL<true>(tile, src, begin, end, values);         \
        tile_of_##LEVEL<false>(tile, src, begin, end, values);                                     \
    }

PQ_PRODUCTS(any, )
#if defined(__x86_64__)
PQ_PRODUCTS(256, PQ_TARGET_256)
PQ_PRODUCTS(256_vnni, PQ_TARGET_256_VNNI)
PQ_PRODUCTS(vnni, PQ_TARGET_VNNI)

template <bool are_nibbles>
PQ_TARGET_VNNI void tail_vnni(const GroupedTile& tile, const CodeRows& src, std::size_t row,
                              std::size_t rows, float* values) {
    if (rows == 1) few_rows_vnni<1, are_nibbles>(tile, src, row, values);
    if (rows == 2) few_rows_vnni<2, are_nibbles>(tile, src, row, values);
}

// Blocks of rows read weights of a group from the nearest cache; what is left of one or two, all.
PQ_TARGET_VNNI void rows_vnni(const GroupedTile& tile, const CodeRows& src, std::size_t begin,
                              std::size_t end, float* values) {
    const std::size_t left = (end - begin) % most_rows, tail = left < 3 ? left : 0;
    if (begin + tail < end) tile_vnni(tile, src, begin, end - tail, values);
    float* const to = values + (end - tail - begin) * lanes;
    if (tile.are_nibbles) return tail_vnni<true>(tile, src, end - tail, tail, to);
    tail_vnni<false>(tile, src, end - tail, tail, to);
}
#endif

#undef PQ_PRODUCTS

} // namespace

TileProducts best_tile_products() {
#if defined(__x86_64__)
    if (multiplies_bytes()) return &rows_vnni;
    if (multiplies_bytes_of_256()) return &tile_256_vnni;
    return widest<TileProducts>(&tile_256, &tile_256, &tile_any);
#else
    return &tile_any;
#endif
}

} // namespace pq
