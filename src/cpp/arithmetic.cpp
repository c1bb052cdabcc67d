#include "errors.hpp"
#include "index_space.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <memory>
#include <string>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t lanes = 32;
constexpr std::size_t grain = std::size_t{4} << 10U; // floats of a piece for one thread

struct Add {
    static float of(float a, float b) { return a + b; }
};
struct Sub {
    static float of(float a, float b) { return a - b; }
};
struct Mul {
    static float of(float a, float b) { return a * b; }
};
struct Div {
    static float of(float a, float b) { return a / b; }
};
// NaN where either is.
struct Max {
    static float of(float a, float b) { return a > b || a != a ? a : b; }
};
struct Min {
    static float of(float a, float b) { return a < b || a != a ? a : b; }
};

// Steps of 0 and 1, of constants, so that the inner loop is one of vectors.
template <typename Alg, std::size_t by_a, std::size_t by_b>
PQ_INLINE void side_by_side(const float* __restrict a, const float* __restrict b,
                            float* __restrict y, std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t j = 0; j < lanes; ++j)
            y[i + j] = Alg::of(a[by_a * (i + j)], b[by_b * (i + j)]);
    for (; i < count; ++i)
        y[i] = Alg::of(a[by_a * i], b[by_b * i]);
}

template <typename Alg>
PQ_INLINE void row_of(const float* a, dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b, float* y,
                      dnnl_dim_t by_y, std::size_t count) {
    if (by_y == 1 && by_a == 1 && by_b == 1) return side_by_side<Alg, 1, 1>(a, b, y, count);
    if (by_y == 1 && by_a == 1 && by_b == 0) return side_by_side<Alg, 1, 0>(a, b, y, count);
    if (by_y == 1 && by_a == 0 && by_b == 1) return side_by_side<Alg, 0, 1>(a, b, y, count);
    for (std::size_t i = 0; i < count; ++i) {
        *y = Alg::of(*a, *b);
        a += by_a;
        b += by_b;
        y += by_y;
    }
}

using Row = void (*)(const float* a, dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b, float* y,
                     dnnl_dim_t by_y, std::size_t count);

template <typename Alg>
PQ_TARGET_512 void row_512(const float* a, dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b,
                           float* y, dnnl_dim_t by_y, std::size_t count) {
    row_of<Alg>(a, by_a, b, by_b, y, by_y, count);
}

template <typename Alg>
PQ_TARGET_256 void row_256(const float* a, dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b,
                           float* y, dnnl_dim_t by_y, std::size_t count) {
    row_of<Alg>(a, by_a, b, by_b, y, by_y, count);
}

template <typename Alg>
void row_any(const float* a, dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b, float* y,
             dnnl_dim_t by_y, std::size_t count) {
    row_of<Alg>(a, by_a, b, by_b, y, by_y, count);
}

template <typename Alg>
Row best() {
    return widest(&row_512<Alg>, &row_256<Alg>, &row_any<Alg>);
}

Row row_by(const std::string& alg) {
    if (alg == "add") return best<Add>();
    if (alg == "sub") return best<Sub>();
    if (alg == "mul") return best<Mul>();
    if (alg == "div") return best<Div>();
    if (alg == "max") return best<Max>();
    if (alg == "min") return best<Min>();
    throw ArgumentFault("ArgumentError", "alg", alg, "add, sub, mul, div, max or min");
}

} // namespace

Pass arithmetic_pass(const std::string& alg, const Dims& dims, const std::vector<Dims>& strides,
                     std::vector<float> constant, bool is_first) {
    constexpr std::size_t item = sizeof(float);
    const Row row = row_by(alg);
    check_space(dims, strides, 3);
    const std::size_t known = constant.empty() ? 2 : is_first ? 0 : 1; // the place of the constant
    Pass pass;
    for (std::size_t i = 0; i < strides.size(); ++i) {
        const std::size_t extent = reach_of(dims, strides[i], 8 * item);
        if (i != known || i == 2) {
            pass.tensors.push_back({extent, item});
        } else if (extent != item * constant.size()) {
            throw ArgumentFault("ShapeError", "constant", std::to_string(constant.size()),
                                std::to_string(extent / item) + ", as strides reach");
        }
    }
    check_apart(dims, strides[2]);
    const auto values = std::make_shared<const std::vector<float>>(std::move(constant));
    pass.run = [row, values, known, rows = rows_of(dims, strides)](char* const* tensors) {
        const float* srcs[2] = {values->data(), values->data()};
        std::size_t next = 0;
        for (std::size_t i = 0; i < 2; ++i)
            if (i != known || known == 2) srcs[i] = reinterpret_cast<const float*>(tensors[next++]);
        auto* const dst = reinterpret_cast<float*>(tensors[next]);
        const std::size_t inner = rows.inner();
        const dnnl_dim_t by[3] = {rows.strides[0].back(), rows.strides[1].back(),
                                  rows.strides[2].back()};
        in_parallel(rows.size(), grain, [&](std::size_t begin, std::size_t end) {
            Walk walk(rows, begin / inner);
            for (std::size_t i = begin; i < end; walk.next()) {
                const auto at = static_cast<dnnl_dim_t>(i % inner);
                const std::size_t count = std::min(inner - i % inner, end - i);
                row(srcs[0] + walk.offset(0) + at * by[0], by[0],
                    srcs[1] + walk.offset(1) + at * by[1], by[1], dst + walk.offset(2) + at * by[2],
                    by[2], count);
                i += count;
            }
        });
    };
    return pass;
}

} // namespace pq
