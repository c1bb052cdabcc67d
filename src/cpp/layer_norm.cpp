#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace pq {

namespace {

constexpr std::size_t lanes = 32;
constexpr std::size_t part = std::size_t{16} << 10U; // values whose sum float32 holds well

struct Affine {
    std::vector<float> gain, shift; // one a column, or one for all
    float epsilon;
    bool is_centered; // the mean is taken off
    std::size_t columns;
};

// Partial sums are short, so that float32 holds them well; they are added in float64.
PQ_INLINE double total(const float* sums) {
    double sum = 0;
    for (std::size_t j = 0; j < lanes; ++j)
        sum += static_cast<double>(sums[j]);
    return sum;
}

PQ_INLINE double sum_of(const float* __restrict x, std::size_t count) {
    float sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t j = 0; j < lanes; ++j)
            sums[j] += x[i + j];
    for (std::size_t j = 0; i + j < count; ++j)
        sums[j] += x[i + j];
    return total(sums);
}

PQ_INLINE double squares_of(const float* __restrict x, std::size_t count, float mean) {
    float squares[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j) {
            const float off = x[i + j] - mean;
            squares[j] += off * off;
        }
    }
    for (std::size_t j = 0; i + j < count; ++j) {
        const float off = x[i + j] - mean;
        squares[j] += off * off;
    }
    return total(squares);
}

// `at`: the column of the first.
PQ_INLINE void normalized(const float* __restrict x, std::size_t count, float mean, float by,
                          const Affine& affine, std::size_t at, float* __restrict y) {
    if (affine.gain.size() == 1 && affine.columns != 1) {
        const float gain = affine.gain[0], shift = affine.shift[0];
        for (std::size_t i = 0; i < count; ++i)
            y[i] = (x[i] - mean) * by * gain + shift;
        return;
    }
    const float* const gain = affine.gain.data() + at;
    const float* const shift = affine.shift.data() + at;
    for (std::size_t i = 0; i < count; ++i)
        y[i] = (x[i] - mean) * by * gain[i] + shift[i];
}

float mean_of(double sum, const Affine& affine) {
    return affine.is_centered ? static_cast<float>(sum / static_cast<double>(affine.columns))
                              : 0.0F;
}

float factor_of(double squares, const Affine& affine) {
    const double variance = squares / static_cast<double>(affine.columns);
    return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(affine.epsilon)));
}

struct Loops {
    double (*sum)(const float* x, std::size_t count);
    double (*squares)(const float* x, std::size_t count, float mean);
    void (*write)(const float* x, std::size_t count, float mean, float by, const Affine& affine,
                  std::size_t at, float* y);
};

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET double sum_##LEVEL(const float* x, std::size_t count) {                                 \
        return sum_of(x, count);                                                                   \
    }                                                                                              \
    TARGET double squares_##LEVEL(const float* x, std::size_t count, float mean) {                 \
        return squares_of(x, count, mean);                                                         \
    }                                                                                              \
    TARGET void write_##LEVEL(const float* x, std::size_t count, float mean, float by,             \
                              const Affine& affine, std::size_t at, float* y) {                    \
        normalized(x, count, mean, by, affine, at, y);                                             \
    }                                                                                              \
    const Loops loops_##LEVEL = {&sum_##LEVEL, &squares_##LEVEL, &write_##LEVEL};

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

void short_row(const Loops& loops, const float* x, const Affine& affine, float* y) {
    const float mean = affine.is_centered ? mean_of(loops.sum(x, affine.columns), affine) : 0.0F;
    const float by = factor_of(loops.squares(x, affine.columns, mean), affine);
    loops.write(x, affine.columns, mean, by, affine, 0, y);
}

// In parts that all threads share: the same parts and sums for any number of them.
void long_row(const Loops& loops, const float* x, const Affine& affine, float* y) {
    const std::size_t columns = affine.columns;
    std::vector<double> sums((columns + part - 1) / part);
    const auto in_parts = [&](const auto& work) {
        in_parallel(sums.size(), 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t at = begin; at < end; ++at)
                work(at, at * part, std::min(part, columns - at * part));
        });
        return std::accumulate(sums.begin(), sums.end(), 0.0);
    };
    const float mean = mean_of(in_parts([&](std::size_t at, std::size_t from, std::size_t count) {
                                   sums[at] = loops.sum(x + from, count);
                               }),
                               affine);
    const float by = factor_of(in_parts([&](std::size_t at, std::size_t from, std::size_t count) {
                                   sums[at] = loops.squares(x + from, count, mean);
                               }),
                               affine);
    in_parts([&](std::size_t, std::size_t from, std::size_t count) {
        loops.write(x + from, count, mean, by, affine, from, y + from);
    });
}

} // namespace

Pass layer_norm_pass(std::size_t rows, float epsilon, std::vector<float> gain,
                     std::vector<float> shift, bool is_centered) {
    const std::size_t columns = gain.size();
    if (columns == 0 || shift.size() != columns) {
        throw ArgumentFault("ShapeError", "shift", std::to_string(shift.size()),
                            std::to_string(columns) + " values, as gain, at least 1");
    }
    if (!(epsilon >= 0) || !std::isfinite(epsilon))
        throw ArgumentFault("ArgumentError", "epsilon", std::to_string(epsilon), "0 or more");
    const std::size_t nbytes = bytes_of_floats("rows", rows, columns);
    const auto is_one = [](const std::vector<float>& values) {
        return std::all_of(values.begin(), values.end(),
                           [&](float value) { return value == values.front(); });
    };
    if (is_one(gain) && is_one(shift)) {
        gain.resize(1);
        shift.resize(1);
    }
    const auto affine = std::make_shared<const Affine>(
            Affine{std::move(gain), std::move(shift), epsilon, is_centered, columns});
    const auto run = [=](char* const* tensors) {
        static const Loops& loops = *widest(&loops_512, &loops_256, &loops_any);
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        if (columns > 2 * part) {
            for (std::size_t row = 0; row < rows; ++row)
                long_row(loops, x + row * columns, *affine, y + row * columns);
            return;
        }
        const std::size_t grain = std::max<std::size_t>(part / columns, 1);
        in_parallel(rows, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row)
                short_row(loops, x + row * columns, *affine, y + row * columns);
        });
    };
    return {{{nbytes, sizeof(float)}, {nbytes, sizeof(float)}}, run};
}

} // namespace pq
