#include "pass.hpp"

#include "errors.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "quantize.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pq {

namespace {

constexpr std::size_t bytes_of_table = 256;

// y[i] = table[x[i]] of `count` bytes side by side.
using Lookup = void (*)(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y,
                        std::size_t count);

void lookup_any(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y,
                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        y[i] = table[x[i]];
}

#if defined(__x86_64__)
// A table of 256 bytes is four registers; the upper bit of a code says which two hold its entry.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void
lookup_vbmi(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
    constexpr std::size_t lanes = 64;
    const __m512i t0 = _mm512_loadu_si512(table);
    const __m512i t1 = _mm512_loadu_si512(table + lanes);
    const __m512i t2 = _mm512_loadu_si512(table + 2 * lanes);
    const __m512i t3 = _mm512_loadu_si512(table + 3 * lanes);
    for (std::size_t i = 0; i < count; i += lanes) {
        const std::size_t left = count - i;
        const __mmask64 mask = left >= lanes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        const __m512i codes = _mm512_maskz_loadu_epi8(mask, x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, codes, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, codes, t3);
        const __mmask64 is_high = _mm512_movepi8_mask(codes);
        _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_blend_epi8(is_high, low, high));
    }
}
#endif

Lookup best_lookup() {
#if defined(__x86_64__)
    if (vector_bits() == 512 && __builtin_cpu_supports("avx512vbmi")) return &lookup_vbmi;
#endif
    return &lookup_any;
}

// An index space as few rows as can be, each row over the dimension in which dst lies closest.
struct Rows {
    Dims dims;
    std::vector<Dims> strides; // of each source, and of dst

    std::size_t inner() const { return static_cast<std::size_t>(dims.back()); }
    std::size_t size() const {
        return std::accumulate(dims.begin(), dims.end(), std::size_t{1},
                               [](std::size_t product, dnnl_dim_t dim) {
                                   return product * static_cast<std::size_t>(dim);
                               });
    }
};

Rows rows_of(const Dims& dims, const std::vector<Dims>& strides) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != 1) order.push_back(axis);
    const Dims& dst = strides.back();
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return dst[a] > dst[b]; });
    Rows rows{{}, std::vector<Dims>(strides.size())};
    for (const std::size_t axis : order) {
        bool goes_on = !rows.dims.empty();
        for (std::size_t i = 0; i < strides.size() && goes_on; ++i)
            goes_on = rows.strides[i].back() == strides[i][axis] * dims[axis];
        if (!goes_on) {
            rows.dims.push_back(dims[axis]);
            for (std::size_t i = 0; i < strides.size(); ++i)
                rows.strides[i].push_back(strides[i][axis]);
            continue;
        }
        rows.dims.back() *= dims[axis];
        for (std::size_t i = 0; i < strides.size(); ++i)
            rows.strides[i].back() = strides[i][axis];
    }
    if (rows.dims.empty()) {
        rows.dims.push_back(1);
        for (Dims& each : rows.strides)
            each.push_back(1);
    }
    return rows;
}

// Where each tensor is in a row, while rows are gone through in order.
class Walk {
public:
    Walk(const Rows& rows, std::size_t row) : rows_(rows), at_(rows.dims.size() - 1, 0) {
        for (std::size_t axis = at_.size(); axis-- > 0;) {
            const auto dim = static_cast<std::size_t>(rows.dims[axis]);
            at_[axis] = static_cast<dnnl_dim_t>(row % dim);
            row /= dim;
            for (std::size_t i = 0; i < rows.strides.size(); ++i)
                offsets_[i] += at_[axis] * rows.strides[i][axis];
        }
    }

    dnnl_dim_t offset(std::size_t tensor) const { return offsets_[tensor]; }

    void next() {
        for (std::size_t axis = at_.size(); axis-- > 0;) {
            const dnnl_dim_t back = at_[axis];
            const bool wraps = ++at_[axis] == rows_.dims[axis];
            if (wraps) at_[axis] = 0;
            for (std::size_t i = 0; i < rows_.strides.size(); ++i)
                offsets_[i] += (wraps ? -back : 1) * rows_.strides[i][axis];
            if (!wraps) return;
        }
    }

private:
    const Rows& rows_;
    Dims at_;
    dnnl_dim_t offsets_[3] = {};
};

// What a row does: of one source or two.
class Table {
public:
    explicit Table(std::vector<std::uint8_t> entries)
        : entries_(std::move(entries)), look_up_(best_lookup()) {
        for (std::size_t i = 0; i < bytes_of_table; ++i)
            is_copy_ = is_copy_ && entries_[i] == i;
        is_copy_ = is_copy_ && entries_.size() == bytes_of_table;
    }

    void row(const std::uint8_t* x, dnnl_dim_t step, std::uint8_t* y, dnnl_dim_t dst_step,
             std::size_t count) const {
        row(entries_.data(), x, step, y, dst_step, count);
    }

    void row(const std::uint8_t* first, dnnl_dim_t first_step, const std::uint8_t* second,
             dnnl_dim_t second_step, std::uint8_t* y, dnnl_dim_t dst_step,
             std::size_t count) const {
        if (first_step == 0) {
            const std::uint8_t* const part = entries_.data() + bytes_of_table * *first;
            return row(part, second, second_step, y, dst_step, count);
        }
        const std::uint8_t* const table = entries_.data();
        for (std::size_t i = 0; i < count; ++i) {
            *y = table[bytes_of_table * *first + *second];
            first += first_step;
            second += second_step;
            y += dst_step;
        }
    }

private:
    void row(const std::uint8_t* table, const std::uint8_t* x, dnnl_dim_t step, std::uint8_t* y,
             dnnl_dim_t dst_step, std::size_t count) const {
        if (dst_step == 1 && step == 0) {
            std::memset(y, table[*x], count);
        } else if (dst_step == 1 && step == 1 && is_copy_) {
            std::memcpy(y, x, count);
        } else if (dst_step == 1 && step == 1) {
            look_up_(table, x, y, count);
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                *y = table[*x];
                x += step;
                y += dst_step;
            }
        }
    }

    std::vector<std::uint8_t> entries_;
    Lookup look_up_;
    bool is_copy_ = true;
};

void check_space(const Dims& dims, const std::vector<Dims>& strides, std::size_t entries) {
    const bool is_one = strides.size() == 2 && entries == bytes_of_table;
    const bool is_two = strides.size() == 3 && entries == bytes_of_table * bytes_of_table;
    if (!is_one && !is_two)
        throw ArgumentFault("ShapeError", "table", std::to_string(entries), "256, 65536 of two");
    for (const dnnl_dim_t dim : dims)
        if (dim < 1) throw ArgumentFault("ShapeError", "dims", std::to_string(dim), "1 or more");
    for (std::size_t i = 0; i < strides.size(); ++i) {
        const dnnl_dim_t least = i + 1 == strides.size() ? 1 : 0;
        if (strides[i].size() != dims.size())
            throw ArgumentFault("LayoutError", "strides", std::to_string(strides[i].size()),
                                std::to_string(dims.size()));
        for (const dnnl_dim_t stride : strides[i])
            if (stride < least)
                throw ArgumentFault("LayoutError", "strides", std::to_string(stride),
                                    "none below " + std::to_string(least));
    }
}

// Threads write dst side by side, and its elements are counted by its dims.
void check_apart(const Dims& dims, const Dims& dst) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != 1) order.push_back(axis);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return dst[a] < dst[b]; });
    dnnl_dim_t least = 1;
    for (const std::size_t axis : order) {
        if (dst[axis] < least)
            throw ArgumentFault("LayoutError", "strides", dims_text(dst) + " of dst",
                                "elements apart from each other");
        least = dst[axis] * dims[axis]; // at most twice what reaches the last of them
    }
}

void run_lookup(const Table& table, const Rows& rows, char* const* tensors) {
    constexpr std::size_t grain = std::size_t{16} << 10U;
    const bool is_of_two = rows.strides.size() == 3;
    const auto* const first = reinterpret_cast<const std::uint8_t*>(tensors[0]);
    const auto* const second = reinterpret_cast<const std::uint8_t*>(tensors[is_of_two ? 1 : 0]);
    auto* const dst = reinterpret_cast<std::uint8_t*>(tensors[is_of_two ? 2 : 1]);
    const std::size_t inner = rows.inner();
    const dnnl_dim_t by_first = rows.strides.front().back();
    const dnnl_dim_t by_second = rows.strides[is_of_two ? 1 : 0].back();
    const dnnl_dim_t by_dst = rows.strides.back().back();
    in_parallel(rows.size(), grain, [&](std::size_t begin, std::size_t end) {
        Walk walk(rows, begin / inner);
        for (std::size_t i = begin; i < end; walk.next()) {
            const auto at = static_cast<dnnl_dim_t>(i % inner);
            const std::size_t count = std::min(inner - i % inner, end - i);
            const std::uint8_t* const x = first + walk.offset(0) + at * by_first;
            std::uint8_t* const y = dst + walk.offset(rows.strides.size() - 1) + at * by_dst;
            if (is_of_two) {
                const std::uint8_t* const other = second + walk.offset(1) + at * by_second;
                table.row(x, by_first, other, by_second, y, by_dst, count);
            } else {
                table.row(x, by_first, y, by_dst, count);
            }
            i += count;
        }
    });
}

} // namespace

std::size_t bytes_of_floats(const char* argument, std::size_t rows, std::size_t columns) {
    constexpr std::size_t most = PTRDIFF_MAX / sizeof(float);
    if (rows == 0 || columns == 0 || rows > most / columns) {
        throw ArgumentFault("ShapeError", argument, std::to_string(rows),
                            "1 to " + std::to_string(columns == 0 ? 0 : most / columns));
    }
    return rows * columns * sizeof(float);
}

Pass quantize_pass(std::size_t count, float scale, std::int32_t zero_point, bool is_signed) {
    const int qmin = is_signed ? -128 : 0;
    if (!(scale > 0) || !std::isfinite(scale))
        throw ArgumentFault("ArgumentError", "scale", std::to_string(scale), "positive, finite");
    if (zero_point < qmin || zero_point > qmin + 255)
        throw ArgumentFault("ArgumentError", "zero_point", std::to_string(zero_point), "a code");
    const std::size_t extent = bytes_of_floats("count", count, 1);
    const auto run = [=](char* const* tensors) {
        const auto* const values = reinterpret_cast<const float*>(tensors[0]);
        const auto convert = [&](auto* codes) {
            return quantize(values, 1, count, &scale, &zero_point, codes);
        };
        const bool all_numbers = is_signed ? convert(reinterpret_cast<std::int8_t*>(tensors[1]))
                                           : convert(reinterpret_cast<std::uint8_t*>(tensors[1]));
        if (!all_numbers) throw ArgumentFault("ArgumentError", "src", "NaN", "numbers");
    };
    return {{{extent, sizeof(float)}, {count, 1}}, run};
}

Pass lookup_pass(std::vector<std::uint8_t> table, const Dims& dims,
                 const std::vector<Dims>& strides) {
    check_space(dims, strides, table.size());
    Pass pass;
    for (const Dims& each : strides)
        pass.tensors.push_back({reach_of(dims, each, 8), 1});
    check_apart(dims, strides.back());
    const auto entries = std::make_shared<const Table>(std::move(table));
    pass.run = [entries, rows = rows_of(dims, strides)](char* const* tensors) {
        run_lookup(*entries, rows, tensors);
    };
    return pass;
}

} // namespace pq
