#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <string>

namespace pq {

namespace {

constexpr std::size_t lanes = 32;
constexpr std::size_t grain = std::size_t{16} << 10U; // values of a piece for one thread

// NaN stays NaN.
struct Largest {
    using Value = float;
    static float of(float most, float x) { return x > most || x != x ? x : most; }
    static float begin(float x) { return x; }
};
struct Total {
    using Value = double; // exact for whole numbers, and nearly so for others
    static double of(double total, float x) { return total + x; }
    static double of(double total, double part) { return total + part; }
    static double begin(float x) { return x; }
};

// `columns` values, at most `lanes`, each of `terms` that lie `step` apart.
template <typename Alg>
PQ_INLINE void columns_of(const float* x, std::size_t terms, std::size_t step, std::size_t columns,
                          float share, float* y) {
    typename Alg::Value found[lanes];
    if (columns == lanes) { // a constant: vectors
        for (std::size_t j = 0; j < lanes; ++j)
            found[j] = Alg::begin(x[j]);
        for (std::size_t i = 1; i < terms; ++i)
            for (std::size_t j = 0; j < lanes; ++j)
                found[j] = Alg::of(found[j], x[i * step + j]);
    } else {
        for (std::size_t j = 0; j < columns; ++j) {
            found[j] = Alg::begin(x[j]);
            for (std::size_t i = 1; i < terms; ++i)
                found[j] = Alg::of(found[j], x[i * step + j]);
        }
    }
    for (std::size_t j = 0; j < columns; ++j)
        y[j] = static_cast<float>(found[j]) / share;
}

// One value of `terms` side by side.
template <typename Alg>
PQ_INLINE float row_of(const float* x, std::size_t terms, float share) {
    std::size_t i = 1;
    auto found = Alg::begin(x[0]);
    if (terms >= 2 * lanes) {
        typename Alg::Value part[lanes];
        for (std::size_t j = 0; j < lanes; ++j)
            part[j] = Alg::begin(x[j]);
        for (i = lanes; i + lanes <= terms; i += lanes)
            for (std::size_t j = 0; j < lanes; ++j)
                part[j] = Alg::of(part[j], x[i + j]);
        found = part[0];
        for (std::size_t j = 1; j < lanes; ++j)
            found = Alg::of(found, part[j]);
    }
    for (; i < terms; ++i)
        found = Alg::of(found, x[i]);
    return static_cast<float>(found) / share;
}

template <typename Alg>
PQ_INLINE void reduce(const float* x, std::size_t terms, std::size_t step, std::size_t columns,
                      float share, float* y) {
    if (step == 1)
        *y = row_of<Alg>(x, terms, share);
    else
        columns_of<Alg>(x, terms, step, columns, share, y);
}

using Some = void (*)(const float* x, std::size_t terms, std::size_t step, std::size_t columns,
                      float share, float* y);

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    template <typename Alg>                                                                        \
    TARGET void some_##LEVEL(const float* x, std::size_t terms, std::size_t step,                  \
                             std::size_t columns, float share, float* y) {                         \
        reduce<Alg>(x, terms, step, columns, share, y);                                            \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

template <typename Alg>
Some best() {
    return widest(&some_512<Alg>, &some_256<Alg>, &some_any<Alg>);
}

} // namespace

Pass reduction_pass(const std::string& alg, std::size_t outer, std::size_t terms,
                    std::size_t inner) {
    if (alg != "sum" && alg != "mean" && alg != "max")
        throw ArgumentFault("ArgumentError", "alg", alg, "sum, mean or max");
    const std::size_t src = bytes_of_floats("terms", bytes_of_floats("outer", outer, terms), inner);
    const std::size_t dst = bytes_of_floats("outer", outer, inner);
    const Some some = alg == "max" ? best<Largest>() : best<Total>();
    const float share = alg == "mean" ? static_cast<float>(terms) : 1.0f;
    const auto run = [=](char* const* tensors) {
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        const std::size_t blocks = (inner + lanes - 1) / lanes;
        const std::size_t work = terms * std::min(inner, lanes);
        const std::size_t pieces = std::max<std::size_t>(grain / work, 1);
        in_parallel(outer * blocks, pieces, [&](std::size_t begin, std::size_t end) {
            for (std::size_t block = begin; block < end; ++block) {
                const std::size_t at = block / blocks, first = block % blocks * lanes;
                some(x + at * terms * inner + first, terms, inner, std::min(inner - first, lanes),
                     share, y + at * inner + first);
            }
        });
    };
    return {{{src / sizeof(float), sizeof(float)}, {dst, sizeof(float)}}, run};
}

} // namespace pq
