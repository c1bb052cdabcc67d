#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t grain = std::size_t{8} << 10U; // values of a piece for one thread

// y = Σ weights[i] · x[index[i] · inner ...], term by term.
PQ_INLINE void row_of(const float* x, const std::int64_t* index, const float* weights,
                      std::size_t taps, std::size_t inner, float* __restrict y) {
    const float* const first = x + static_cast<std::size_t>(index[0]) * inner;
    if (taps == 2) {
        const float* const second = x + static_cast<std::size_t>(index[1]) * inner;
        const float one = weights[0], other = weights[1];
        for (std::size_t j = 0; j < inner; ++j)
            y[j] = first[j] * one + second[j] * other;
        return;
    }
    for (std::size_t j = 0; j < inner; ++j)
        y[j] = first[j] * weights[0];
    for (std::size_t i = 1; i < taps; ++i) {
        const float* const next = x + static_cast<std::size_t>(index[i]) * inner;
        for (std::size_t j = 0; j < inner; ++j)
            y[j] += next[j] * weights[i];
    }
}

using Row = void (*)(const float* x, const std::int64_t* index, const float* weights,
                     std::size_t taps, std::size_t inner, float* y);

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET void row_##LEVEL(const float* x, const std::int64_t* index, const float* weights,       \
                            std::size_t taps, std::size_t inner, float* y) {                       \
        row_of(x, index, weights, taps, inner, y);                                                 \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

} // namespace

Pass interpolation_pass(std::size_t outer, std::size_t length, std::size_t inner,
                        std::vector<std::int64_t> index, std::vector<float> weights,
                        std::size_t taps) {
    if (taps == 0 || index.empty() || index.size() % taps != 0)
        throw ArgumentFault("ShapeError", "index", std::to_string(index.size()),
                            "so many taps for each result");
    if (weights.size() != index.size())
        throw ArgumentFault("ShapeError", "weights", std::to_string(weights.size()),
                            std::to_string(index.size()) + ", as of index");
    for (const std::int64_t each : index)
        if (each < 0 || each >= static_cast<std::int64_t>(length))
            throw ArgumentFault("ArgumentError", "index", std::to_string(each),
                                "0 to " + std::to_string(length) + ", less 1");
    const std::size_t count = index.size() / taps;
    const std::size_t src = bytes_of_floats(
            "outer", bytes_of_floats("length", length, inner) / sizeof(float), outer);
    const std::size_t dst =
            bytes_of_floats("outer", bytes_of_floats("index", count, inner) / sizeof(float), outer);
    const auto at = std::make_shared<const std::vector<std::int64_t>>(std::move(index));
    const auto by = std::make_shared<const std::vector<float>>(std::move(weights));
    const auto run = [=](char* const* tensors) {
        static const Row row = widest(&row_512, &row_256, &row_any);
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        const std::size_t piece = std::max<std::size_t>(grain / inner, 1);
        in_parallel(outer * count, piece, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t first = i % count * taps;
                row(x + i / count * length * inner, at->data() + first, by->data() + first, taps,
                    inner, y + i * inner);
            }
        });
    };
    return {{{src, sizeof(float)}, {dst, sizeof(float)}}, run};
}

} // namespace pq
