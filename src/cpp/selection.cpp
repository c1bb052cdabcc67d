#include "errors.hpp"
#include "index_space.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t grain = std::size_t{4} << 10U; // elements of a piece for one thread

using Choose = void (*)(const std::uint8_t* m, dnnl_dim_t by_m, const float* a, dnnl_dim_t by_a,
                        const float* b, dnnl_dim_t by_b, float* y, dnnl_dim_t by_y,
                        std::size_t count);
using Tell = void (*)(const float* x, std::size_t count, std::uint8_t* y);

// Steps of 0 and 1, of constants, so that the loop is one of vectors.
template <std::size_t by_a, std::size_t by_b>
PQ_INLINE void side_by_side(const std::uint8_t* __restrict m, const float* __restrict a,
                            const float* __restrict b, float* __restrict y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const float first = a[by_a * i], second = b[by_b * i]; // both are there to be read
        y[i] = m[i] != 0 ? first : second;
    }
}

PQ_INLINE void choose(const std::uint8_t* m, dnnl_dim_t by_m, const float* a, dnnl_dim_t by_a,
                      const float* b, dnnl_dim_t by_b, float* y, dnnl_dim_t by_y,
                      std::size_t count) {
    if (by_y == 1 && by_m == 1) {
        if (by_a == 1 && by_b == 1) return side_by_side<1, 1>(m, a, b, y, count);
        if (by_a == 1 && by_b == 0) return side_by_side<1, 0>(m, a, b, y, count);
        if (by_a == 0 && by_b == 1) return side_by_side<0, 1>(m, a, b, y, count);
        if (by_a == 0 && by_b == 0) return side_by_side<0, 0>(m, a, b, y, count);
    }
    for (std::size_t i = 0; i < count; ++i) {
        *y = *m != 0 ? *a : *b;
        m += by_m;
        a += by_a;
        b += by_b;
        y += by_y;
    }
}

PQ_INLINE void tell(const float* __restrict x, std::size_t count, std::uint8_t* __restrict y) {
    for (std::size_t i = 0; i < count; ++i)
        y[i] = x[i] != x[i] ? 1 : 0;
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET void choose_##LEVEL(const std::uint8_t* m, dnnl_dim_t by_m, const float* a,             \
                               dnnl_dim_t by_a, const float* b, dnnl_dim_t by_b, float* y,         \
                               dnnl_dim_t by_y, std::size_t count) {                               \
        choose(m, by_m, a, by_a, b, by_b, y, by_y, count);                                         \
    }                                                                                              \
    TARGET void tell_##LEVEL(const float* x, std::size_t count, std::uint8_t* y) {                 \
        tell(x, count, y);                                                                         \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

void check_item(std::size_t item) {
    if (item < 1 || item > 16)
        throw ArgumentFault("ShapeError", "item", std::to_string(item), "1 to 16 bytes");
}

template <std::size_t item>
void pick(const char* src, const std::int64_t* places, const char* fill, char* dst,
          std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(dst + item * i, places[i] < 0 ? fill : src + item * places[i], item);
}

} // namespace

Pass select_pass(const Dims& dims, const std::vector<Dims>& strides,
                 std::vector<std::vector<float>> known) {
    constexpr std::size_t item = sizeof(float);
    check_space(dims, strides, 4);
    check_apart(dims, strides[3]);
    if (known.size() != 2)
        throw ArgumentFault("ShapeError", "known", std::to_string(known.size()), "2");
    Pass pass;
    pass.tensors.push_back({reach_of(dims, strides[0], 8), 1});
    for (std::size_t i = 1; i < 4; ++i) {
        const std::size_t extent = reach_of(dims, strides[i], 8 * item);
        if (i == 3 || known[i - 1].empty())
            pass.tensors.push_back({extent, item});
        else if (extent != item * known[i - 1].size())
            throw ArgumentFault("ShapeError", "known", std::to_string(known[i - 1].size()),
                                std::to_string(extent / item) + ", as strides reach");
    }
    const auto held = std::make_shared<const std::vector<std::vector<float>>>(std::move(known));
    static const Choose row = widest(&choose_512, &choose_256, &choose_any);
    pass.run = [=, rows = rows_of(dims, strides)](char* const* tensors) {
        const auto* const mask = reinterpret_cast<const std::uint8_t*>(tensors[0]);
        const float* srcs[2] = {(*held)[0].data(), (*held)[1].data()};
        std::size_t next = 1;
        for (std::size_t i = 0; i < 2; ++i)
            if ((*held)[i].empty()) srcs[i] = reinterpret_cast<const float*>(tensors[next++]);
        const float *const a = srcs[0], *const b = srcs[1];
        auto* const dst = reinterpret_cast<float*>(tensors[next]);
        const std::size_t inner = rows.inner();
        const dnnl_dim_t by_m = rows.strides[0].back(), by_a = rows.strides[1].back();
        const dnnl_dim_t by_b = rows.strides[2].back(), by_y = rows.strides[3].back();
        in_parallel(rows.size(), grain, [&](std::size_t begin, std::size_t end) {
            Walk walk(rows, begin / inner);
            for (std::size_t i = begin; i < end; walk.next()) {
                const auto at = static_cast<dnnl_dim_t>(i % inner);
                const std::size_t count = std::min(inner - i % inner, end - i);
                row(mask + walk.offset(0) + at * by_m, by_m, a + walk.offset(1) + at * by_a, by_a,
                    b + walk.offset(2) + at * by_b, by_b, dst + walk.offset(3) + at * by_y, by_y,
                    count);
                i += count;
            }
        });
    };
    return pass;
}

Pass is_nan_pass(std::size_t count) {
    const std::size_t nbytes = bytes_of_floats("count", count, 1);
    static const Tell tells = widest(&tell_512, &tell_256, &tell_any);
    const auto run = [=](char* const* tensors) {
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<std::uint8_t*>(tensors[1]);
        in_parallel(count, grain, [&](std::size_t begin, std::size_t end) {
            tells(x + begin, end - begin, y + begin);
        });
    };
    return {{{nbytes, sizeof(float)}, {count, 1}}, run};
}

Pass pick_pass(std::size_t count, std::size_t item, std::vector<std::int64_t> places,
               std::string fill) {
    check_item(item);
    if (places.empty()) throw ArgumentFault("ShapeError", "places", "0", "1 at least");
    const auto most = static_cast<std::int64_t>(count);
    for (const std::int64_t place : places)
        if (place < -1 || place >= most || (place < 0 && fill.size() != item))
            throw ArgumentFault("ArgumentError", "places", std::to_string(place),
                                "0 to " + std::to_string(most - 1) + ", -1 with an item to fill");
    const std::size_t src = bytes_of_floats("count", count, item) / sizeof(float);
    const std::size_t dst = bytes_of_floats("places", places.size(), item) / sizeof(float);
    const auto held = std::make_shared<const std::vector<std::int64_t>>(std::move(places));
    const auto run = [=](char* const* tensors) {
        in_parallel(held->size(), grain, [&](std::size_t begin, std::size_t end) {
            const std::int64_t* const at = held->data() + begin;
            char* const y = tensors[1] + item * begin;
            const std::size_t part = end - begin;
            if (item == 1) return pick<1>(tensors[0], at, fill.data(), y, part);
            if (item == 4) return pick<4>(tensors[0], at, fill.data(), y, part);
            if (item == 8) return pick<8>(tensors[0], at, fill.data(), y, part);
            for (std::size_t i = 0; i < part; ++i) {
                const char* const from = at[i] < 0 ? fill.data() : tensors[0] + item * at[i];
                std::memcpy(y + item * i, from, item);
            }
        });
    };
    return {{{src, 1}, {dst, 1}}, run};
}

Pass rows_pass(std::size_t count, const py::array_t<float>& table) {
    if (table.ndim() != 2 || !(table.flags() & py::array::c_style))
        throw ArgumentFault("LayoutError", "table", std::to_string(table.ndim()) + " dims",
                            "2 dims without gaps");
    const auto height = static_cast<std::int64_t>(table.shape(0));
    const auto width = static_cast<std::size_t>(table.shape(1));
    const std::size_t nbytes = bytes_of_floats("count", count, width);
    const std::size_t of_indices = bytes_of_floats("count", count, 2);
    const float* const values = table.data(); // whoever holds the pass holds the table
    const auto run = [=](char* const* tensors) {
        const auto* const at = tensors[0];
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        in_parallel(
                count, std::max<std::size_t>(grain / std::max<std::size_t>(width, 1), 1),
                [&](std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                        std::int64_t row = 0;
                        std::memcpy(&row, at + sizeof(row) * i, sizeof(row));
                        if (row < -height || row >= height)
                            throw ArgumentFault("ArgumentError", "indices", std::to_string(row),
                                                "-" + std::to_string(height) + " to " +
                                                        std::to_string(height - 1));
                        const auto from = static_cast<std::size_t>(row < 0 ? row + height : row);
                        std::memcpy(y + i * width, values + from * width, width * sizeof(float));
                    }
                });
    };
    return {{{of_indices, 1}, {nbytes, sizeof(float)}}, run};
}

} // namespace pq
