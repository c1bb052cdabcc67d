#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t lanes = 32;

struct Affine {
    std::vector<float> gain, shift; // one a column
    float epsilon;
    bool is_centered; // the mean is taken off
};

// Partial sums are short, so that float32 holds them well; they are added in float64.
PQ_INLINE double total(const float* part) {
    double sum = 0;
    for (std::size_t j = 0; j < lanes; ++j)
        sum += static_cast<double>(part[j]);
    return sum;
}

PQ_INLINE void row_of(const float* __restrict x, std::size_t count, const Affine& affine,
                      float* __restrict y) {
    float sums[lanes] = {}, squares[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t j = 0; j < lanes; ++j)
            sums[j] += x[i + j];
    for (std::size_t j = 0; i + j < count; ++j)
        sums[j] += x[i + j];
    const auto columns = static_cast<double>(count);
    const auto mean = affine.is_centered ? static_cast<float>(total(sums) / columns) : 0.0F;
    for (i = 0; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j) {
            const float off = x[i + j] - mean;
            squares[j] += off * off;
        }
    }
    for (std::size_t j = 0; i + j < count; ++j) {
        const float off = x[i + j] - mean;
        squares[j] += off * off;
    }
    const double variance = total(squares) / columns;
    const auto by =
            static_cast<float>(1 / std::sqrt(variance + static_cast<double>(affine.epsilon)));
    const float* const gain = affine.gain.data();
    const float* const shift = affine.shift.data();
    for (i = 0; i < count; ++i)
        y[i] = (x[i] - mean) * by * gain[i] + shift[i];
}

using Row = void (*)(const float* x, std::size_t count, const Affine& affine, float* y);

PQ_TARGET_512 void row_512(const float* x, std::size_t count, const Affine& affine, float* y) {
    row_of(x, count, affine, y);
}

PQ_TARGET_256 void row_256(const float* x, std::size_t count, const Affine& affine, float* y) {
    row_of(x, count, affine, y);
}

void row_any(const float* x, std::size_t count, const Affine& affine, float* y) {
    row_of(x, count, affine, y);
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
    const auto affine = std::make_shared<const Affine>(
            Affine{std::move(gain), std::move(shift), epsilon, is_centered});
    const auto run = [=](char* const* tensors) {
        static const Row normalize = widest(&row_512, &row_256, &row_any);
        const auto* const x = reinterpret_cast<const float*>(tensors[0]);
        auto* const y = reinterpret_cast<float*>(tensors[1]);
        const std::size_t grain = std::max<std::size_t>((std::size_t{16} << 10U) / columns, 1);
        in_parallel(rows, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row)
                normalize(x + row * columns, columns, *affine, y + row * columns);
        });
    };
    return {{{nbytes, sizeof(float)}, {nbytes, sizeof(float)}}, run};
}

} // namespace pq
