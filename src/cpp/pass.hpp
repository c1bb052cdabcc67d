// Steps of a program that are passes of our own over memory, for what lies between primitives.
#pragma once

#include "common.hpp"

#include "product.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pq {

// Immutable once made; safe to run from many threads at once.
struct Pass {
    struct Tensor {
        std::size_t extent = 0; // bytes from its first to its last
        std::size_t item = 1;   // bytes of an element, of which its place is a multiple
    };

    static constexpr std::size_t most_tensors = 5;

    std::vector<Tensor> tensors;                   // dst last
    std::function<void(char* const* tensors)> run; // needs no GIL
    std::vector<std::size_t> grows = {};           // those that it writes to beside dst
};

// Of rows without gaps. Throws ShapeError, naming an argument, where that is none or more than
// memory can have.
std::size_t bytes_of_floats(const char* argument, std::size_t rows, std::size_t columns);

// codes = clamp(rne(x / scale) + zero_point), each operation in float32, of values (images,
// channels, places) without gaps; codes have channels last: at most 4 of them. Its run throws
// ArgumentError where a value is NaN. All of these throw ShapeError, LayoutError or ArgumentError
// of what no memory holds, or would be no codes.
Pass quantize_pass(std::size_t images, std::size_t channels, std::size_t places, float scale,
                   std::int32_t zero_point, bool is_signed);

// dst[i] = table[src[i]], or table[256 · first[i] + second[i]] of two sources: bytes, in an index
// space of any dims, where strides of sources may be 0. strides: of each source, and of dst, whose
// elements lie apart from each other. product, sum: what gives the same as the table of two for all
// pairs of bytes, and is faster.
Pass lookup_pass(std::vector<std::uint8_t> table, const Dims& dims,
                 const std::vector<Dims>& strides, const std::optional<Product>& product,
                 const std::optional<CodeSum>& sum);

// What a code of 8 bits is worth.
struct Codes {
    float scale = 1;
    std::int32_t zero_point = 0;
    bool is_signed = false;
};

// Codes of the mean over all places of each channel, channels last and without gaps: the sum of
// codes is exact, and the mean in units of dst's scale is rounded in float64 and then to a code.
Pass mean_pass(std::size_t images, std::size_t places, std::size_t channels, const Codes& src,
               const Codes& dst);

// One of the dims that windows slide over.
struct WindowDim {
    std::size_t length, count; // of the source, and how many windows there are
    std::size_t kernel, stride, dilation, lo;
};

// The largest of each window of f32, u8 or s8 values, channels last and without gaps: of NaN NaN.
// Throws ShapeError where a window has no value.
Pass largest_pass(const std::string& dtype, std::size_t images, std::size_t channels,
                  const std::vector<WindowDim>& dims);

// y = (x - mean) / sqrt(variance + epsilon) · gain + shift of float32 rows without gaps, each of as
// many columns as gain and shift have values. Not centered: of a mean of 0, and the mean square.
Pass layer_norm_pass(std::size_t rows, float epsilon, std::vector<float> gain,
                     std::vector<float> shift, bool is_centered);

// dst = alg(first, second) of float32 values: add, sub, mul, div, max or min, in an index space of
// any dims, where strides of sources may be 0. strides: of both, and of dst, whose elements lie
// apart. constant: where it is not empty, it is the first source or the second, and no tensor.
Pass arithmetic_pass(const std::string& alg, const Dims& dims, const std::vector<Dims>& strides,
                     std::vector<float> constant, bool is_first);

// dst = mask ? first : second, of bytes and float32 values, in an index space of any dims. strides:
// of mask, first, second and dst. known: first and second, empty where they are tensors.
Pass select_pass(const Dims& dims, const std::vector<Dims>& strides,
                 std::vector<std::vector<float>> known);

// A byte of 1 where alg(first, second) holds, of 0 elsewhere: equal, less or less_or_equal, of s32,
// s64 or f32 values, as `arithmetic_pass` has them. constant: the bytes of a source that is none.
Pass comparison_pass(const std::string& alg, const std::string& dtype, const Dims& dims,
                     const std::vector<Dims>& strides, std::string constant, bool is_first);

// The same numbers in another type, of bool, u8, s8, s32, s64 and f32: of floats the whole part,
// of bools 1 and 0, and whether they are not 0.
Pass conversion_pass(std::size_t count, const std::string& src, const std::string& dst);

// Sums, means, products, logarithms of sums (all in float64, rounded once but for the mean) or
// maxima (NaN where there is one) of (outer, terms, inner) float32 values over terms: sum, mean,
// prod, log_sum, max.
Pass reduction_pass(const std::string& alg, std::size_t outer, std::size_t terms,
                    std::size_t inner);

// dst[.., o, ..] = Σ weights[o, i] · src[.., index[o, i], ..] over `taps` of (outer, length, inner)
// float32 values, each product and sum rounded.
Pass interpolation_pass(std::size_t outer, std::size_t length, std::size_t inner,
                        std::vector<std::int64_t> index, std::vector<float> weights,
                        std::size_t taps);

// A byte of 1 for each float32 value that is NaN, of 0 for others.
Pass is_nan_pass(std::size_t count);

// dst[i] = src[places[i]], or fill where that is -1: items of so many bytes, of count in src.
Pass pick_pass(std::size_t count, std::size_t item, std::vector<std::int64_t> places,
               std::string fill);

// dst[i] = table[indices[i]]: rows of a table that outlives the pass, by int64, from its end where
// they are negative. Its run throws ArgumentError where an index is none.
Pass rows_pass(std::size_t count, const py::array_t<float>& table);

// An LSTM or a GRU without what its source gives to the gates. weights: of each direction
// (gates · hidden, hidden), in ONNX's order of gates: i, o, f, c, or z, r, h. shift: of a GRU whose
// candidate is reset after its products, what is added to them, hidden values a direction. codes:
// weights of 8 bits instead, each row's worth its scale; every step's states are codes then, too.
struct Recurrence {
    bool is_lstm = true;
    std::vector<bool> is_backward; // one a direction
    std::vector<float> weights, shift;
    bool has_h = false, has_c = false; // whether it begins with states, or zeros
    std::vector<std::int8_t> codes = {};
    std::vector<float> scales = {};
};

// Of sums (steps, batch, directions, gates · hidden), and (directions, batch, hidden) states where
// there are: the results (steps, directions, batch, hidden), and behind them the last states.
Pass recurrence_pass(std::size_t steps, std::size_t batch, std::size_t hidden,
                     const Recurrence& what);

} // namespace pq
