#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace pq {

namespace {

constexpr std::size_t lanes = 32;
constexpr std::size_t grain = std::size_t{16} << 10U; // values of a piece for one thread
constexpr std::size_t few = 8; // results, of which each is made of pieces if it is long

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
struct Multiple {
    using Value = double;
    static double of(double product, float x) { return product * x; }
    static double of(double product, double part) { return product * part; }
    static double begin(float x) { return x; }
};

// `columns` values, at most `lanes`, each of `terms` that lie `step` apart.
template <typename Alg>
PQ_INLINE void columns_of(const float* x, std::size_t terms, std::size_t step, std::size_t columns,
                          typename Alg::Value* found) {
    if (columns == lanes) { // a constant: vectors
        typename Alg::Value part[lanes];
        for (std::size_t j = 0; j < lanes; ++j)
            part[j] = Alg::begin(x[j]);
        for (std::size_t i = 1; i < terms; ++i)
            for (std::size_t j = 0; j < lanes; ++j)
                part[j] = Alg::of(part[j], x[i * step + j]);
        std::copy_n(part, lanes, found);
        return;
    }
    for (std::size_t j = 0; j < columns; ++j) {
        found[j] = Alg::begin(x[j]);
        for (std::size_t i = 1; i < terms; ++i)
            found[j] = Alg::of(found[j], x[i * step + j]);
    }
}

// One value of `terms` side by side.
template <typename Alg>
PQ_INLINE typename Alg::Value row_of(const float* x, std::size_t terms) {
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
    return found;
}

template <typename Alg>
PQ_INLINE void reduce(const float* x, std::size_t terms, std::size_t step, std::size_t columns,
                      typename Alg::Value* found) {
    if (step == 1)
        *found = row_of<Alg>(x, terms);
    else
        columns_of<Alg>(x, terms, step, columns, found);
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    template <typename Alg>                                                                        \
    TARGET void some_##LEVEL(const float* x, std::size_t terms, std::size_t step,                  \
                             std::size_t columns, typename Alg::Value* found) {                    \
        reduce<Alg>(x, terms, step, columns, found);                                               \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

// What becomes of a result: of `divisor` 1 it stays.
struct Finish {
    float divisor = 1;
    bool is_log = false;
    float operator()(double found) const {
        return static_cast<float>(is_log ? std::log(found) : found) / divisor;
    }
};

template <typename Alg>
std::function<void(char* const*)> run_of(std::size_t outer, std::size_t terms, std::size_t inner,
                                         Finish finish) {
    const auto some = widest(&some_512<Alg>, &some_256<Alg>, &some_any<Alg>);
    const std::size_t width = std::min(inner, lanes), blocks = (inner + lanes - 1) / lanes;
    // A few long results are made of pieces, of the same terms on any number of threads.
    const std::size_t of_piece = std::max<std::size_t>(grain / width, 1);
    const std::size_t count = outer * blocks < few ? (terms + of_piece - 1) / of_piece : 1;
    const std::size_t length = count == 1 ? terms : of_piece;
    const std::size_t pieces = std::max<std::size_t>(grain / (length * width), 1);
    return [=](char* const* tensors) {
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        std::vector<typename Alg::Value> parts(count == 1 ? 0 : outer * blocks * count * lanes);
        in_parallel(outer * blocks * count, pieces, [&](std::size_t begin, std::size_t end) {
            for (std::size_t piece = begin; piece < end; ++piece) {
                const std::size_t block = piece / count, term = piece % count * length;
                const std::size_t at = block / blocks, first = block % blocks * lanes;
                const std::size_t columns = std::min(inner - first, lanes);
                typename Alg::Value own[lanes];
                auto* const found = count == 1 ? own : parts.data() + piece * lanes;
                some(x + (at * terms + term) * inner + first, std::min(length, terms - term), inner,
                     columns, found);
                for (std::size_t j = 0; count == 1 && j < columns; ++j)
                    y[at * inner + first + j] = finish(found[j]);
            }
        });
        for (std::size_t block = 0; count > 1 && block < outer * blocks; ++block) {
            const std::size_t at = block / blocks, first = block % blocks * lanes;
            for (std::size_t j = 0; j < std::min(inner - first, lanes); ++j) {
                const auto* const part = parts.data() + block * count * lanes + j;
                auto found = part[0];
                for (std::size_t piece = 1; piece < count; ++piece)
                    found = Alg::of(found, part[piece * lanes]);
                y[at * inner + first + j] = finish(found);
            }
        }
    };
}

} // namespace

Pass reduction_pass(const std::string& alg, std::size_t outer, std::size_t terms,
                    std::size_t inner) {
    if (alg != "sum" && alg != "mean" && alg != "max" && alg != "prod" && alg != "log_sum")
        throw ArgumentFault("ArgumentError", "alg", alg, "sum, mean, max, prod or log_sum");
    const std::size_t src = bytes_of_floats("terms", bytes_of_floats("outer", outer, terms), inner);
    const std::size_t dst = bytes_of_floats("outer", outer, inner);
    const Finish finish{alg == "mean" ? static_cast<float>(terms) : 1.0f, alg == "log_sum"};
    const auto run = alg == "max"    ? run_of<Largest>(outer, terms, inner, finish)
                     : alg == "prod" ? run_of<Multiple>(outer, terms, inner, finish)
                                     : run_of<Total>(outer, terms, inner, finish);
    return {{{src / sizeof(float), sizeof(float)}, {dst, sizeof(float)}}, run};
}

} // namespace pq
