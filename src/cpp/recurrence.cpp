#include "coded_weights.hpp"
#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <memory>
#include <utility>

// No bits are promised here that others have, too: a product and a sum may be rounded once.
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#include "power.hpp" // as the lines above say

namespace pq {

namespace {

constexpr std::size_t lanes = 32;                          // columns that lie together
constexpr std::size_t most_rows = CodedWeights::most_rows; // of a batch, which read weights once

// 1 + e^-x
PQ_INLINE float of_sigmoid(float x) {
    return 1.0f + power_of(-x);
}

PQ_INLINE float sigmoid(float x) {
    return 1.0f / of_sigmoid(x);
}

// sigmoid(gate) · tanh(x), of one division. The divisor may be infinite, where that is 0.
PQ_INLINE float gated_tangent(float gate, float x) {
    const float less_one = of_tangent(x);
    return less_one / ((less_one + 2.0f) * of_sigmoid(gate));
}

std::size_t padded(std::size_t columns, std::size_t multiple = lanes) {
    return (columns + multiple - 1) / multiple * multiple;
}

// Rows [begin, begin + columns) of (.., inner) weights, as tiles (inner, lanes); zeros behind them.
std::vector<float> tiled(const float* weights, std::size_t columns, std::size_t inner) {
    std::vector<float> tiles(padded(columns) * inner);
    for (std::size_t column = 0; column < columns; ++column)
        for (std::size_t k = 0; k < inner; ++k)
            tiles[(column / lanes * inner + k) * lanes + column % lanes] =
                    weights[column * inner + k];
    return tiles;
}

// By reference: vectors that go from function to function need the same instructions in both.
template <typename Of>
PQ_INLINE typename Of::Loose& at(float* place) {
    return *reinterpret_cast<typename Of::Loose*>(place);
}

template <typename Of>
PQ_INLINE const typename Of::Loose& at(const float* place) {
    return *reinterpret_cast<const typename Of::Loose*>(place);
}

// out += in · weights, of two vectors of columns. Even and odd k apart: additions wait for each
// other.
template <typename Of>
PQ_INLINE void add_product(const float* weights, std::size_t inner, const float* in, float* out) {
    constexpr std::size_t half = sizeof(typename Of::Vector) / sizeof(float);
    typename Of::Vector even_left = at<Of>(out), even_right = at<Of>(out + half);
    typename Of::Vector odd_left = {}, odd_right = {};
    std::size_t k = 0;
    for (; k + 2 <= inner; k += 2, weights += 2 * lanes) {
        even_left += in[k] * at<Of>(weights);
        even_right += in[k] * at<Of>(weights + half);
        odd_left += in[k + 1] * at<Of>(weights + lanes);
        odd_right += in[k + 1] * at<Of>(weights + lanes + half);
    }
    if (k < inner) {
        even_left += in[k] * at<Of>(weights);
        even_right += in[k] * at<Of>(weights + half);
    }
    at<Of>(out) = even_left + odd_left;
    at<Of>(out + half) = even_right + odd_right;
}

// The same of four rows, each value of the weights read once.
template <typename Of>
PQ_INLINE void add_four_products(const float* weights, std::size_t inner, const float* const* in,
                                 float* const* out, std::size_t column) {
    using Vector = typename Of::Vector;
    constexpr std::size_t half = sizeof(Vector) / sizeof(float);
    const float *a = in[0], *b = in[1], *c = in[2], *d = in[3];
    float *const a_out = out[0] + column, *const b_out = out[1] + column;
    float *const c_out = out[2] + column, *const d_out = out[3] + column;
    Vector a_left = at<Of>(a_out), a_right = at<Of>(a_out + half);
    Vector b_left = at<Of>(b_out), b_right = at<Of>(b_out + half);
    Vector c_left = at<Of>(c_out), c_right = at<Of>(c_out + half);
    Vector d_left = at<Of>(d_out), d_right = at<Of>(d_out + half);
    for (std::size_t k = 0; k < inner; ++k, weights += lanes) {
        const Vector left = at<Of>(weights), right = at<Of>(weights + half);
        a_left += a[k] * left;
        a_right += a[k] * right;
        b_left += b[k] * left;
        b_right += b[k] * right;
        c_left += c[k] * left;
        c_right += c[k] * right;
        d_left += d[k] * left;
        d_right += d[k] * right;
    }
    at<Of>(a_out) = a_left;
    at<Of>(a_out + half) = a_right;
    at<Of>(b_out) = b_left;
    at<Of>(b_out + half) = b_right;
    at<Of>(c_out) = c_left;
    at<Of>(c_out + half) = c_right;
    at<Of>(d_out) = d_left;
    at<Of>(d_out + half) = d_right;
}

// Of the states: tiles of float32, or codes.
struct Weights {
    std::vector<float> tiles;
    CodedWeights codes;
};

// out[row] += in[row] · weights, of as many columns as tiles have. room: for codes of rows.
template <typename Of, std::size_t rows>
PQ_INLINE void add_products(const Weights& from, std::size_t inner, const float* const* in,
                            float* const* out, std::uint8_t* room) {
    static_assert(rows == 1 || rows == most_rows);
    if (!from.codes.empty()) return from.codes.add_products(rows, in, out, room);
    const std::vector<float>& tiles = from.tiles;
    constexpr std::size_t columns = 2 * sizeof(typename Of::Vector) / sizeof(float);
    for (std::size_t column = 0; column < tiles.size() / inner; column += columns) {
        const float* const weights = tiles.data() + column / lanes * lanes * inner + column % lanes;
        if constexpr (rows == 1)
            add_product<Of>(weights, inner, in[0], out[0] + column);
        else
            add_four_products<Of>(weights, inner, in, out, column);
    }
}

struct Direction {
    bool is_backward = false;
    Weights gates, candidate; // the second of a GRU alone
    std::vector<float> shift; // of the candidate's products, where they are reset after
};

struct Cells {
    std::size_t steps, batch, hidden;
    bool is_lstm;
    std::vector<Direction> directions;
    std::size_t sums() const { return (is_lstm ? 4 : 3) * hidden; } // of a step, row and direction
};

PQ_INLINE void lstm_row(std::size_t hidden, const float* __restrict sums, float* __restrict cell,
                        float* __restrict result) {
    const float *in = sums, *out = in + hidden, *forget = out + hidden, *fresh = forget + hidden;
    for (std::size_t j = 0; j < hidden; ++j) {
        cell[j] = sigmoid(forget[j]) * cell[j] + gated_tangent(in[j], fresh[j]);
        result[j] = gated_tangent(out[j], cell[j]);
    }
}

PQ_INLINE void gru_row(std::size_t hidden, const float* __restrict update,
                       const float* __restrict fresh, const float* __restrict before,
                       float* __restrict result) {
    for (std::size_t j = 0; j < hidden; ++j) {
        const float kept = sigmoid(update[j]);
        result[j] = (1.0f - kept) * tangent(fresh[j]) + kept * before[j];
    }
}

// All steps of `rows` rows of a batch from `first` on, in a direction.
template <typename Of, std::size_t rows>
PQ_INLINE void run_rows(const Cells& cells, std::size_t which, std::size_t first,
                        const float* gates, const float* h, const float* c, float* dst) {
    const Direction& direction = cells.directions[which];
    const std::size_t hidden = cells.hidden, count = cells.directions.size();
    const std::size_t wide = padded(cells.is_lstm ? 4 * hidden : 2 * hidden, CodedWeights::lanes);
    const std::size_t narrow = padded(hidden, CodedWeights::lanes);
    const std::size_t of_step = count * cells.batch * hidden;
    std::vector<float> room(rows * (wide + 2 * narrow) + hidden);
    std::vector<std::uint8_t> codes(rows * direction.gates.codes.row_size());
    const float* const zeros = room.data() + rows * (wide + 2 * narrow);
    float *sums[rows], *fresh[rows], *reset[rows];
    const float* before[rows];
    for (std::size_t row = 0; row < rows; ++row) {
        sums[row] = room.data() + row * wide;
        fresh[row] = room.data() + rows * wide + row * narrow;
        reset[row] = fresh[row] + rows * narrow;
        const std::size_t own = (which * cells.batch + first + row) * hidden;
        before[row] = h != nullptr ? h + own : zeros;
        float* const cell = dst + (cells.steps + 1) * of_step + own;
        if (cells.is_lstm) std::copy_n(c != nullptr ? c + own : zeros, hidden, cell);
    }
    for (std::size_t turn = 0; turn < cells.steps; ++turn) {
        const std::size_t step = direction.is_backward ? cells.steps - 1 - turn : turn;
        const float* x[rows];
        for (std::size_t row = 0; row < rows; ++row) {
            x[row] = gates + ((step * cells.batch + first + row) * count + which) * cells.sums();
            std::copy_n(x[row], cells.is_lstm ? 4 * hidden : 2 * hidden, sums[row]);
        }
        add_products<Of, rows>(direction.gates, hidden, before, sums, codes.data());
        const bool is_after = !direction.shift.empty();
        if (!cells.is_lstm) {
            for (std::size_t row = 0; row < rows; ++row) {
                const float* const last = is_after ? direction.shift.data() : x[row] + 2 * hidden;
                std::copy_n(last, hidden, fresh[row]);
                for (std::size_t j = 0; j < hidden; ++j) {
                    const float open = sigmoid(sums[row][hidden + j]);
                    reset[row][j] = is_after ? open : open * before[row][j];
                }
            }
            add_products<Of, rows>(direction.candidate, hidden, is_after ? before : reset, fresh,
                                   codes.data());
        }
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t own = (which * cells.batch + first + row) * hidden;
            float* const result = dst + step * of_step + own;
            if (cells.is_lstm) {
                lstm_row(hidden, sums[row], dst + (cells.steps + 1) * of_step + own, result);
            } else {
                for (std::size_t j = 0; is_after && j < hidden; ++j)
                    fresh[row][j] = x[row][2 * hidden + j] + reset[row][j] * fresh[row][j];
                gru_row(hidden, sums[row], fresh[row], before[row], result);
            }
            before[row] = result;
        }
    }
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t own = (which * cells.batch + first + row) * hidden;
        std::copy_n(before[row], hidden, dst + cells.steps * of_step + own);
    }
}

using Rows = void (*)(const Cells& cells, std::size_t direction, std::size_t first,
                      std::size_t rows, const float* gates, const float* h, const float* c,
                      float* dst);

#define PQ_LOOPS(LEVEL, TARGET, OF)                                                                \
    TARGET void rows_##LEVEL(const Cells& cells, std::size_t direction, std::size_t first,         \
                             std::size_t rows, const float* gates, const float* h, const float* c, \
                             float* dst) {                                                         \
        if (rows == most_rows)                                                                     \
            return run_rows<OF, most_rows>(cells, direction, first, gates, h, c, dst);             \
        for (std::size_t row = first; row < first + rows; ++row)                                   \
            run_rows<OF, 1>(cells, direction, row, gates, h, c, dst);                              \
    }

PQ_LOOPS(512, PQ_TARGET_512, Of512)
PQ_LOOPS(256, PQ_TARGET_256, Of256)
PQ_LOOPS(any, , Of128)

#undef PQ_LOOPS

// Rows [first, first + columns) of a direction's weights.
Weights weights_of(const Recurrence& what, std::size_t first, std::size_t columns,
                   std::size_t hidden) {
    if (what.codes.empty()) return {tiled(&what.weights[first * hidden], columns, hidden), {}};
    return {{}, {&what.codes[first * hidden], &what.scales[first], columns, hidden}};
}

std::vector<Direction> directions_of(const Recurrence& what, std::size_t gates,
                                     std::size_t hidden) {
    std::vector<Direction> directions(what.is_backward.size());
    const std::size_t own = gates * hidden, first = (what.is_lstm ? 4 : 2) * hidden;
    for (std::size_t which = 0; which < directions.size(); ++which) {
        Direction& direction = directions[which];
        direction.is_backward = what.is_backward[which];
        direction.gates = weights_of(what, which * own, first, hidden);
        if (what.is_lstm) continue;
        direction.candidate = weights_of(what, which * own + first, hidden, hidden);
        if (what.shift.empty()) continue;
        direction.shift.assign(what.shift.begin() + static_cast<std::ptrdiff_t>(which * hidden),
                               what.shift.begin() +
                                       static_cast<std::ptrdiff_t>((which + 1) * hidden));
    }
    return directions;
}

} // namespace

Pass recurrence_pass(std::size_t steps, std::size_t batch, std::size_t hidden,
                     const Recurrence& what) {
    const std::size_t count = what.is_backward.size(), gates = what.is_lstm ? 4 : 3;
    const std::size_t size = what.codes.empty() ? what.weights.size() : what.codes.size();
    if (count == 0 || size != count * gates * hidden * hidden) {
        throw ArgumentFault("ShapeError", "weights", std::to_string(size),
                            "of each direction, its gates times hidden times hidden values");
    }
    if (!what.codes.empty() && what.scales.size() != count * gates * hidden) {
        throw ArgumentFault("ShapeError", "scales", std::to_string(what.scales.size()),
                            "of each direction, its gates times hidden values");
    }
    if (!what.shift.empty() && (what.is_lstm || what.shift.size() != count * hidden)) {
        throw ArgumentFault("ShapeError", "shift", std::to_string(what.shift.size()),
                            "of each direction of a GRU, hidden values");
    }
    const std::size_t state = bytes_of_floats("hidden", count * batch, hidden);
    const std::size_t of_gates = bytes_of_floats("steps", steps * batch, count * gates * hidden);
    const std::size_t more = what.is_lstm ? 2 : 1;
    bytes_of_floats("steps", (steps + more) * count * batch, hidden);
    std::vector<Pass::Tensor> tensors{{of_gates, sizeof(float)}};
    for (const bool is_there : {what.has_h, what.has_c})
        if (is_there) tensors.push_back({state, sizeof(float)});
    tensors.push_back({(steps + more) * state, sizeof(float)});
    const auto cells = std::make_shared<const Cells>(
            Cells{steps, batch, hidden, what.is_lstm, directions_of(what, gates, hidden)});
    const bool has_h = what.has_h, has_c = what.has_c;
    const auto run = [=](char* const* places) {
        static const Rows run_some = widest(&rows_512, &rows_256, &rows_any);
        const auto next = [&] { return reinterpret_cast<float*>(*places++); };
        const float* const x = next();
        const float* const h = has_h ? next() : nullptr;
        const float* const c = has_c ? next() : nullptr;
        float* const dst = next();
        const std::size_t blocks = (batch + most_rows - 1) / most_rows;
        const std::size_t work = std::min(batch, most_rows) * steps * gates * hidden * hidden;
        const std::size_t grain =
                std::max<std::size_t>((std::size_t{16} << 10U) / std::max<std::size_t>(work, 1), 1);
        in_parallel(count * blocks, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t block = begin; block < end; ++block) {
                const std::size_t first = block % blocks * most_rows;
                run_some(*cells, block / blocks, first, std::min(batch - first, most_rows), x, h, c,
                         dst);
            }
        });
    };
    return {std::move(tensors), run};
}

} // namespace pq
