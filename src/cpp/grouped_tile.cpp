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
                std::int32_t& sum = sums[i / quad];
                if constexpr (are_nibbles)
                    sum += (wei[i] & 15) * x[k] + (wei[i] >> 4) * x[k + quad];
                else
                    sum += wei[i] * x[k];
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

// Bytes of weights are the unsigned ones of a product, so that halves of bytes need no more than
// to be taken apart. A single row has sums of even and odd steps apart: additions wait for each
// other.
template <std::size_t rows, bool are_nibbles>
PQ_TARGET_VNNI PQ_INLINE void sums_of_rows(const Group& group, Sums& sums) {
    constexpr std::size_t width = sizeof(__m512i), vectors = bytes_of_step / width;
    constexpr std::size_t chains = rows == 1 ? 2 : 1;
    const __m512i low = _mm512_set1_epi8(15);
    __m512i acc[chains][vectors][rows];
    for (std::size_t v = 0; v < vectors; ++v) {
        for (std::size_t row = 0; row < rows; ++row) {
            acc[0][v][row] = _mm512_set1_epi32(group.first[row]);
            if constexpr (chains == 2) acc[1][v][row] = _mm512_setzero_si512();
        }
    }
    const std::uint8_t* wei = group.wei;
    const std::int8_t* src = group.src;
    const auto add = [&](__m512i(&to)[rows], __m512i weights,
                         const std::int8_t* codes) PQ_TARGET_VNNI {
        for (std::size_t row = 0; row < rows; ++row) {
            const __m512i x = _mm512_set1_epi32(four(codes + row * group.stride));
            to[row] = _mm512_dpbusd_epi32(to[row], weights, x);
        }
    };
    std::size_t at = 0;
    if constexpr (are_nibbles) {
        for (; at < group.steps; ++at) {
            for (std::size_t v = 0; v < vectors; ++v) {
                const __m512i both = _mm512_loadu_si512(wei + v * width);
                const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
                add(acc[0][v], _mm512_and_si512(both, low), src);
                add(acc[chains - 1][v], high, src + quad);
            }
            wei += bytes_of_step;
            src += 2 * quad;
        }
    } else {
        for (; at + chains <= group.steps; at += chains) {
            for (std::size_t chain = 0; chain < chains; ++chain) {
                for (std::size_t v = 0; v < vectors; ++v)
                    add(acc[chain][v], _mm512_loadu_si512(wei + v * width), src);
                wei += bytes_of_step;
                src += quad;
            }
        }
        if (at < group.steps)
            for (std::size_t v = 0; v < vectors; ++v)
                add(acc[0][v], _mm512_loadu_si512(wei + v * width), src);
    }
    for (std::size_t v = 0; v < vectors; ++v) {
        if constexpr (chains == 2) acc[0][v][0] = _mm512_add_epi32(acc[0][v][0], acc[1][v][0]);
        for (std::size_t row = 0; row < rows; ++row)
            _mm512_storeu_si512(&sums[row][v * (width / quad)], acc[0][v][row]);
    }
}

template <bool are_nibbles>
PQ_TARGET_VNNI PQ_INLINE void sums_vnni(const Group& group, Sums& sums) {
    switch (group.rows) {
    case 1:
        return sums_of_rows<1, are_nibbles>(group, sums);
    case 2:
        return sums_of_rows<2, are_nibbles>(group, sums);
    case 3:
        return sums_of_rows<3, are_nibbles>(group, sums);
    default:
        return sums_of_rows<4, are_nibbles>(group, sums);
    }
}

// Halves of bytes multiplied in pairs stay far below 16 bits. Whole ones do not: even and odd ones
// are multiplied apart, as 16 bits.
template <bool are_nibbles>
PQ_TARGET_256 PQ_INLINE void sums_of_256(const Group& group, std::size_t row, std::int32_t* sums) {
    constexpr std::size_t width = sizeof(__m256i), vectors = 4;
    constexpr int byte = 8;
    const __m256i low = _mm256_set1_epi8(are_nibbles ? 15 : 0), ones = _mm256_set1_epi16(1);
    const __m256i even_bytes = _mm256_set1_epi16(255);
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
                    const __m256i pairs =
                            _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(both, low), x),
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
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + (first + v * width) / quad),
                                acc[v]);
    }
}

template <bool are_nibbles>
PQ_TARGET_256 PQ_INLINE void sums_256(const Group& group, Sums& to) {
    for (std::size_t row = 0; row < group.rows; ++row)
        sums_of_256<are_nibbles>(group, row, to[row]);
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
PQ_PRODUCTS(vnni, PQ_TARGET_VNNI)
PQ_PRODUCTS(256, PQ_TARGET_256)
#endif

#undef PQ_PRODUCTS

} // namespace

TileProducts best_tile_products() {
#if defined(__x86_64__)
    if (multiplies_bytes()) return &tile_vnni;
    return widest<TileProducts>(&tile_256, &tile_256, &tile_any);
#else
    return &tile_any;
#endif
}

} // namespace pq
