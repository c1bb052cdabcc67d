#include "attention.hpp"

#include "attention_pass.hpp"
#include "errors.hpp"
#include "parallel.hpp"
#include "power.hpp"
#include "quantize.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace pq {

namespace {

constexpr std::size_t lanes = HeadMemory::lanes, quad = HeadMemory::quad, line = HeadMemory::line;
constexpr std::int32_t sign = 0x80;
constexpr std::size_t products_at_once = std::size_t{1} << 18U; // that take some microseconds
constexpr std::size_t rows_at_once = 16; // of one head, whose memory of before stays near

// Turns pairs of a row by the angles of its place, in float32, each product and sum rounded.
void turn(const Rotation& how, std::size_t place, float* x) {
    const std::size_t half = how.half;
    const float* const cos = how.cos.data() + place * half;
    const float* const sin = how.sin.data() + place * half;
    for (std::size_t i = 0; i < half; ++i) {
        float& first = how.is_paired ? x[2 * i] : x[i];
        float& second = how.is_paired ? x[2 * i + 1] : x[half + i];
        const float one = first, two = second;
        first = one * cos[i] - two * sin[i];
        second = one * sin[i] + two * cos[i];
    }
}

float coded(const float* x, std::size_t count, std::int8_t* codes) {
    float scale = 1;
    if (!best_attention_loops().code_row(x, count, scale, codes))
        throw ArgumentFault("ArgumentError", "src", "values that are not finite", "finite numbers");
    return scale;
}

// The tokens that a query sees: [first, end).
struct Seen {
    std::size_t first, end;
    Seen(std::size_t end_of, std::size_t window)
        : first(window == 0 || window > end_of ? 0 : end_of - window), end(end_of) {}
    std::size_t count() const { return end - first; }
    std::size_t begin() const { return first / lanes * lanes; } // of the first tile
    std::size_t skipped() const { return first - begin(); }     // of that tile
    std::size_t tiles() const { return (end - begin() + lanes - 1) / lanes; }
};

struct Attention {
    AttentionDims dims;
    HeadMemory memory;
    Rotation rotation;
    std::vector<float> sinks;

    // Writes one token's keys and values of one head.
    void append(const float* key, const float* value, std::size_t place, char* head, float* room,
                std::int8_t* codes) const {
        std::copy_n(key, memory.depth, room);
        if (!rotation.cos.empty()) turn(rotation, place, room);
        const std::size_t tile = place / lanes, lane = place % lanes;
        if (!memory.are_codes) {
            auto* const keys = reinterpret_cast<float*>(memory.keys(head));
            for (std::size_t d = 0; d < memory.depth; ++d)
                keys[(tile * memory.depth + d) * lanes + lane] = room[d];
            auto* const values = reinterpret_cast<float*>(memory.values(head));
            std::copy_n(value, memory.width, values + place * memory.columns());
            return;
        }
        std::fill(codes + memory.depth, codes + memory.quads() * quad, std::int8_t{0});
        memory.key_scales(head)[place] = coded(room, memory.depth, codes);
        auto* const keys = reinterpret_cast<std::uint8_t*>(memory.keys(head));
        for (std::size_t d = 0; d < memory.quads() * quad; ++d)
            keys[((tile * memory.quads() + d / quad) * lanes + lane) * quad + d % quad] =
                    static_cast<std::uint8_t>(codes[d] + sign);
        memory.value_scales(head)[place] = coded(value, memory.width, codes);
        auto* const values = memory.values(head);
        for (std::size_t e = 0; e < memory.width; ++e)
            values[(place / quad * memory.columns() + e) * quad + place % quad] =
                    static_cast<char>(codes[e]);
    }

    struct Room {
        std::vector<float> query, scores, context;
        std::vector<std::int32_t> sums, of_high, of_low;
        std::vector<std::int8_t> codes;
        std::vector<std::uint8_t> high, low;
    };

    // The most tokens of the tiles that a row sees some of.
    std::size_t longest() const {
        const std::size_t more = 2 * lanes; // of its first and last tile
        return dims.window == 0 ? memory.capacity : std::min(memory.capacity, dims.window + more);
    }

    // What one row needs that sees tiles of `count` tokens.
    Room room(std::size_t count) const {
        const std::size_t tiles = HeadMemory::up_to(count, lanes), columns = memory.columns();
        const std::size_t coded_count = memory.are_codes ? tiles : 0;
        return {std::vector<float>(memory.depth),
                std::vector<float>(tiles),
                std::vector<float>(columns),
                std::vector<std::int32_t>(coded_count),
                std::vector<std::int32_t>(columns),
                std::vector<std::int32_t>(columns),
                std::vector<std::int8_t>(memory.quads() * quad),
                std::vector<std::uint8_t>(coded_count),
                std::vector<std::uint8_t>(coded_count)};
    }

    // Of one row of queries, that of a token at a place.
    void attend(const float* query, std::size_t place, const float* sink, char* head, float* y,
                Room& own) const {
        const AttentionLoops& loops = best_attention_loops();
        const Seen seen(place + 1, dims.window);
        const std::size_t count = seen.count(), tiles = seen.tiles(), columns = memory.columns();
        std::copy_n(query, memory.depth, own.query.data());
        if (!rotation.cos.empty()) turn(rotation, place, own.query.data());
        float* const scores = own.scores.data() + seen.skipped();
        float top = 0;
        if (memory.are_codes) {
            const float worth = coded(own.query.data(), memory.depth, own.codes.data());
            std::int32_t total = 0;
            for (const std::int8_t code : own.codes)
                total += code;
            const auto* const keys = reinterpret_cast<std::uint8_t*>(memory.keys(head));
            loops.code_scores(keys + seen.begin() * memory.quads() * quad, own.codes.data(),
                              memory.quads(), tiles, own.sums.data());
            top = loops.code_tops(own.sums.data() + seen.skipped(), sign * total,
                                  memory.key_scales(head) + seen.first, worth * dims.scale, count,
                                  scores);
        } else {
            const auto* const keys = reinterpret_cast<float*>(memory.keys(head));
            loops.scores(keys + seen.begin() * memory.depth, own.query.data(), memory.depth, tiles,
                         own.scores.data());
            top = loops.tops(dims.scale, count, scores);
        }
        if (dims.softcap != 0) top = loops.caps(dims.softcap, count, scores);
        if (sink != nullptr) top = std::max(top, *sink);
        float sum = loops.powers(scores, count, top);
        if (sink != nullptr) sum += power_of(*sink - top);
        float* const sums = own.context.data();
        float factor = 1 / sum;
        if (memory.are_codes) {
            factor = code_context(seen, head, sum, own);
        } else {
            const auto* const values = reinterpret_cast<float*>(memory.values(head));
            loops.context(values + seen.first * columns, scores, count, columns, sums);
        }
        for (std::size_t e = 0; e < memory.width; ++e)
            y[e] = sums[e] * factor;
    }

    // Returns what the sums are worth, which it writes.
    float code_context(const Seen& seen, char* head, float sum, Room& own) const {
        constexpr float most_of_share = 65535, of_byte = 256;
        const std::size_t skipped = seen.skipped(), end = skipped + seen.count();
        const std::size_t padded = HeadMemory::up_to(end, quad);
        for (std::vector<std::uint8_t>* const part : {&own.high, &own.low}) {
            std::fill_n(part->begin(), skipped, std::uint8_t{0});
            std::fill(part->begin() + static_cast<std::ptrdiff_t>(end),
                      part->begin() + static_cast<std::ptrdiff_t>(padded), std::uint8_t{0});
        }
        const float most = best_attention_loops().code_shares(
                own.scores.data() + skipped, memory.value_scales(head) + seen.first, seen.count(),
                own.high.data() + skipped, own.low.data() + skipped);
        const auto* const values = reinterpret_cast<std::int8_t*>(memory.values(head));
        best_attention_loops().code_context(
                values + seen.begin() * memory.columns(), own.high.data(), own.low.data(),
                padded / quad, memory.columns(), own.of_high.data(), own.of_low.data());
        for (std::size_t e = 0; e < memory.columns(); ++e)
            own.context[e] = static_cast<float>(own.of_high[e]) * of_byte +
                             static_cast<float>(own.of_low[e]);
        return most / most_of_share / sum;
    }

    void run(const float* q, const float* k, const float* v, char* cache, float* dst) const {
        const std::size_t tokens = dims.tokens, heads = dims.batch * dims.groups;
        std::int64_t before = 0;
        std::memcpy(&before, cache, sizeof before);
        const auto capacity = static_cast<std::int64_t>(memory.capacity);
        if (before < 0 || before > capacity - static_cast<std::int64_t>(tokens)) {
            throw ArgumentFault("ShapeError", "cache",
                                std::to_string(before) + " tokens and " + std::to_string(tokens) +
                                        " more",
                                "at most its capacity, " + std::to_string(capacity));
        }
        const auto past = static_cast<std::size_t>(before);
        const auto end = static_cast<std::int64_t>(past + tokens);
        if (!rotation.cos.empty() && static_cast<std::size_t>(end) > rotation.places()) {
            throw ArgumentFault("ShapeError", "cache", std::to_string(end) + " tokens",
                                "at most the " + std::to_string(rotation.places()) +
                                        " that have angles");
        }
        char* const layer = cache + line + dims.layer * heads * memory.nbytes();
        const auto head_of = [&](std::size_t batch, std::size_t group) {
            return layer + (batch * dims.groups + group) * memory.nbytes();
        };
        in_parallel(heads * tokens, 16, [&](std::size_t begin, std::size_t stop) {
            std::vector<float> room(memory.depth);
            std::vector<std::int8_t> codes(std::max(memory.quads() * quad, memory.columns()));
            for (std::size_t i = begin; i < stop; ++i) {
                const std::size_t token = i % tokens, group = i / tokens % dims.groups;
                const std::size_t batch = i / tokens / dims.groups;
                append(k + dims.of_k.at(batch, token, group), v + dims.of_v.at(batch, token, group),
                       past + token, head_of(batch, group), room.data(), codes.data());
            }
        });
        const std::size_t blocks = (tokens + rows_at_once - 1) / rows_at_once;
        const std::size_t share = dims.heads / dims.groups;
        const std::size_t rows = std::min(tokens, rows_at_once);
        const std::size_t seen = std::min(past + tokens, longest());
        const std::size_t work = rows * seen * (memory.depth + memory.width);
        const std::size_t grain = std::max<std::size_t>(products_at_once / work, 1);
        in_parallel(dims.batch * dims.heads * blocks, grain,
                    [&](std::size_t begin, std::size_t stop) {
                        Room own = room(seen);
                        for (std::size_t i = begin; i < stop; ++i) {
                            const std::size_t block = i % blocks, head = i / blocks % dims.heads;
                            const std::size_t batch = i / blocks / dims.heads;
                            const std::size_t last = std::min((block + 1) * rows_at_once, tokens);
                            for (std::size_t row = block * rows_at_once; row < last; ++row)
                                attend(q + dims.of_q.at(batch, row, head), past + row,
                                       sinks.empty() ? nullptr : &sinks[head],
                                       head_of(batch, head / share),
                                       dst + dims.of_dst.at(batch, row, head), own);
                        }
                    });
    }
};

} // namespace

Pass attention_pass(const AttentionDims& dims, bool are_codes, Rotation rotation,
                    std::vector<float> sinks) {
    const HeadMemory memory{dims.depth, dims.width, dims.capacity, are_codes};
    if (dims.groups == 0 || dims.heads % dims.groups != 0)
        throw ArgumentFault("ShapeError", "heads", std::to_string(dims.heads),
                            "a multiple of " + std::to_string(dims.groups));
    if (dims.capacity == 0 || dims.capacity % lanes != 0 || dims.depth == 0 || dims.width == 0)
        throw ArgumentFault("ShapeError", "capacity", std::to_string(dims.capacity),
                            "a multiple of 16");
    if (rotation.cos.size() != rotation.sin.size() || 2 * rotation.half > dims.depth ||
        (rotation.half != 0 && rotation.cos.size() % rotation.half != 0))
        throw ArgumentFault("ShapeError", "cos", std::to_string(rotation.cos.size()),
                            "as many as sin has, of at most half a head a place");
    if (!sinks.empty() && sinks.size() != dims.heads)
        throw ArgumentFault("ShapeError", "sinks", std::to_string(sinks.size()),
                            "one of each head, or none");
    const std::size_t rows = dims.batch * dims.tokens;
    const std::size_t layers = dims.layers, heads = dims.batch * dims.groups;
    if (dims.layer >= layers)
        throw ArgumentFault("ArgumentError", "layer", std::to_string(dims.layer),
                            "one of " + std::to_string(layers));
    Pass pass;
    const auto of_floats = [](std::size_t count) {
        return Pass::Tensor{count * sizeof(float), sizeof(float)};
    };
    if (dims.is_packed) {
        pass.tensors.push_back(of_floats(
                rows * ((dims.heads + dims.groups) * dims.depth + dims.groups * dims.width)));
    } else {
        pass.tensors = {of_floats(rows * dims.heads * dims.depth),
                        of_floats(rows * dims.groups * dims.depth),
                        of_floats(rows * dims.groups * dims.width)};
    }
    pass.grows = {pass.tensors.size()};
    pass.tensors.push_back({line + layers * heads * memory.nbytes(), line});
    pass.tensors.push_back(of_floats(rows * dims.heads * dims.width));
    const auto own = std::make_shared<const Attention>(
            Attention{dims, memory, std::move(rotation), std::move(sinks)});
    pass.run = [own](char* const* tensors) {
        const AttentionDims& of = own->dims;
        const auto* const first = reinterpret_cast<const float*>(tensors[0]);
        if (of.is_packed) {
            const float* const k = first + of.heads * of.depth;
            own->run(first, k, k + of.groups * of.depth, tensors[1],
                     reinterpret_cast<float*>(tensors[2]));
        } else {
            own->run(first, reinterpret_cast<const float*>(tensors[1]),
                     reinterpret_cast<const float*>(tensors[2]), tensors[3],
                     reinterpret_cast<float*>(tensors[4]));
        }
    };
    return pass;
}

std::size_t attention_bytes(std::size_t layers, std::size_t heads, std::size_t depth,
                            std::size_t width, std::size_t capacity, bool are_codes) {
    return line + layers * heads * HeadMemory{depth, width, capacity, are_codes}.nbytes();
}

} // namespace pq
