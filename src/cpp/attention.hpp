// Attention on a cache of keys and values that grows in place: one layer's memory, and loops on it.
#pragma once

#include "common.hpp"

#include "wide.hpp"

namespace pq {

// How keys and values of one head lie, of `capacity` tokens, a multiple of 16. Zeros are no tokens.
//
//     codes:  keys    (capacity / 16, depth / 4, 16, 4) of u8: 128 more than they are, and a scale
//             values  (capacity / 4, width, 4) of s8, and a scale a token
//     floats: keys    (capacity / 16, depth, 16), values (capacity, width)
struct HeadMemory {
    static constexpr std::size_t lanes = 16, quad = 4, line = 64;

    std::size_t depth, width, capacity;
    bool are_codes;

    std::size_t quads() const { return up_to(depth, quad) / quad; }
    std::size_t columns() const { return up_to(width, lanes); }
    std::size_t key_bytes() const {
        return are_codes ? capacity * quads() * quad : capacity * depth * sizeof(float);
    }
    std::size_t value_bytes() const {
        return capacity * columns() * (are_codes ? 1 : sizeof(float));
    }
    std::size_t scale_bytes() const { return are_codes ? capacity * sizeof(float) : 0; }
    std::size_t nbytes() const { return key_bytes() + value_bytes() + 2 * scale_bytes(); }

    char* keys(char* head) const { return head; }
    char* values(char* head) const { return head + key_bytes(); }
    float* key_scales(char* head) const {
        return reinterpret_cast<float*>(head + key_bytes() + value_bytes());
    }
    float* value_scales(char* head) const { return key_scales(head) + capacity; }

    static std::size_t up_to(std::size_t count, std::size_t multiple) {
        return (count + multiple - 1) / multiple * multiple;
    }
};

// Of one row of queries, loops over the tokens of a head; a tile is 16 of them.
struct AttentionLoops {
    // A row as s8 codes by its own range, as quantizers have them; false: it is not finite.
    bool (*code_row)(const float* x, std::size_t count, float& scale, std::int8_t* codes);
    // x[t] = float(sums[t] - shift) · scales[t] · by, or x[t] · by; returns the largest
    float (*code_tops)(const std::int32_t* sums, std::int32_t shift, const float* scales, float by,
                       std::size_t count, float* x);
    float (*tops)(float by, std::size_t count, float* x);
    // x[t] = cap · tanh(x[t] / cap); returns the largest
    float (*caps)(float cap, std::size_t count, float* x);
    // x[t] = x[t] · scales[t], and bytes of rne(x · (65535 / most)); returns the most
    float (*code_shares)(float* x, const float* scales, std::size_t count, std::uint8_t* high,
                         std::uint8_t* low);
    // sums[t] = Σ (key + 128) · query, exact
    void (*code_scores)(const std::uint8_t* keys, const std::int8_t* query, std::size_t quads,
                        std::size_t tiles, std::int32_t* sums);
    // sums[t] = Σ query · key, in order
    void (*scores)(const float* keys, const float* query, std::size_t depth, std::size_t tiles,
                   float* sums);
    // x[t] = e^(x[t] - top); returns their sum: of 16 lanes each, and then those in order
    float (*powers)(float* x, std::size_t count, float top);
    // Sums of values times the high and the low bytes of shares, four tokens at a time, exact
    void (*code_context)(const std::int8_t* values, const std::uint8_t* high,
                         const std::uint8_t* low, std::size_t blocks, std::size_t columns,
                         std::int32_t* of_high, std::int32_t* of_low);
    // y[e] = Σ shares[t] · values[t][e], in order
    void (*context)(const float* values, const float* shares, std::size_t count,
                    std::size_t columns, float* y);
};

// The fastest that this process may use.
const AttentionLoops& best_attention_loops();

} // namespace pq
