// The step of a program that is attention on a cache.
#pragma once

#include "pass.hpp"

#include <vector>

namespace pq {

// Where a row of a head begins: in elements from one batch, token and head to the next.
struct RowStrides {
    std::size_t batch, token, head;
    std::size_t at(std::size_t b, std::size_t t, std::size_t h) const {
        return b * batch + t * token + h * head;
    }
};

struct AttentionDims {
    std::size_t batch, tokens, heads, groups, depth, width; // groups: heads of keys and values
    std::size_t capacity, layers, layer;                    // of the cache, and which is its own
    bool is_packed; // queries, keys and values of a token side by side, in one tensor
    RowStrides of_q, of_k, of_v, of_dst;
    float scale;        // of scores
    std::size_t window; // tokens that a query sees, its own the last; 0: all before it
    float softcap;      // what scores stay below, by a tanh; 0: nothing
};

// Cosines and sines (places, half) of angles that pairs of keys and queries are turned by.
struct Rotation {
    std::size_t half = 0;
    bool is_paired = false; // neighbours; else one of each half
    std::vector<float> cos = {}, sin = {};
    std::size_t places() const { return half == 0 ? 0 : cos.size() / half; }
};

// Appends keys and values of new tokens to a cache, and writes for each query its attention on all
// tokens up to its own. Tensors: queries, keys and values, or one of all; the cache, which it
// writes to: 8 bytes of how many tokens there are before (which it leaves), zeros up to byte 64,
// and (layers, batch, groups) heads; dst. Throws ShapeError where the cache is full. One at a time
// may run on one cache.
// Sinks: of each head, a score that takes its share and has no value; or none.
Pass attention_pass(const AttentionDims& dims, bool are_codes, Rotation rotation,
                    std::vector<float> sinks);

std::size_t attention_bytes(std::size_t layers, std::size_t heads, std::size_t depth,
                            std::size_t width, std::size_t capacity, bool are_codes);

} // namespace pq
