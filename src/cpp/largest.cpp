#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace pq {

namespace {

constexpr std::size_t most_dims = 3;
constexpr std::size_t grain = std::size_t{16} << 10U; // values that are compared, for one thread

// Of one dimension: where the taps of its windows lie in the source.
struct Reach {
    std::size_t length = 1, count = 1, kernel = 1, stride = 1, dilation = 1, lo = 0;

    struct Taps {
        std::size_t first, count; // place in the source of the first that is there
    };

    Taps taps(std::size_t window) const {
        const std::size_t begin = window * stride;
        const std::size_t skipped = begin < lo ? (lo - begin + dilation - 1) / dilation : 0;
        const std::size_t first = begin + skipped * dilation - lo;
        if (skipped >= kernel || first >= length) return {0, 0};
        return {first, std::min(kernel - skipped, (length - first - 1) / dilation + 1)};
    }
};

using Reaches = std::array<Reach, most_dims>; // the last is of neighbours

// Of so many bytes, anywhere. Loops over as few values as these would be unrolled, and no vectors;
// of 64 bytes compilers compare floats one by one.
template <typename Value, std::size_t bytes>
struct Lanes {
    typedef Value Vector __attribute__((vector_size(bytes), aligned(sizeof(Value)), may_alias));
};

// One value, or a vector of them. NaN stays NaN.
template <typename Some>
PQ_INLINE void take_largest(Some& most, const Some& x) {
    const Some greater = x > most ? x : most;
    most = x == x ? greater : x;
}

// Channels side by side: as many as Some has.
template <typename Some, typename Value>
PQ_INLINE void window_of(const Value* x, const Reaches& reaches, std::size_t channels,
                         const std::array<Reach::Taps, most_dims>& taps, Value* y) {
    Some most = *reinterpret_cast<const Some*>(x);
    const std::size_t row = reaches[2].length * channels, plane = reaches[1].length * row;
    for (std::size_t i = 0; i < taps[0].count; ++i) {
        for (std::size_t j = 0; j < taps[1].count; ++j) {
            const Value* place =
                    x + i * reaches[0].dilation * plane + j * reaches[1].dilation * row;
            for (std::size_t k = 0; k < taps[2].count; ++k) {
                take_largest(most, *reinterpret_cast<const Some*>(place));
                place += reaches[2].dilation * channels;
            }
        }
    }
    *reinterpret_cast<Some*>(y) = most;
}

// Windows of a row whose taps lie at the same distance from each other as the windows do, so that
// all their values are neighbours: as many as have the same taps, where the stride is 1.
struct Run {
    Reach::Taps taps; // of the first
    std::size_t windows = 1;
};

std::vector<Run> runs_of(const Reach& reach) {
    std::vector<Run> runs;
    for (std::size_t at = 0; at < reach.count; ++at) {
        const Reach::Taps taps = reach.taps(at);
        const bool goes_on = reach.stride == 1 && !runs.empty() &&
                             taps.count == runs.back().taps.count &&
                             taps.first == runs.back().taps.first + runs.back().windows;
        if (goes_on)
            ++runs.back().windows;
        else
            runs.push_back({taps, 1});
    }
    return runs;
}

// All windows of a row: neighbours along the last dimension.
template <std::size_t bytes, typename Value>
PQ_INLINE void row_of(const Value* x, const Reaches& reaches, const std::vector<Run>& runs,
                      std::size_t channels, std::array<Reach::Taps, most_dims> taps, Value* y) {
    constexpr std::size_t few = 16, least = 8, wide = bytes / sizeof(Value);
    constexpr std::size_t narrow = few / sizeof(Value), narrowest = least / sizeof(Value);
    using Wide = typename Lanes<Value, bytes>::Vector;
    using Narrow = typename Lanes<Value, few>::Vector;
    using Narrowest = typename Lanes<Value, least>::Vector;
    for (const Run& run : runs) {
        taps[2] = run.taps;
        const Value* const from = x + run.taps.first * channels;
        const std::size_t count = run.windows * channels;
        std::size_t c = 0;
        for (; c + wide <= count; c += wide)
            window_of<Wide>(from + c, reaches, channels, taps, y + c);
        for (; c + narrow <= count; c += narrow)
            window_of<Narrow>(from + c, reaches, channels, taps, y + c);
        for (; c + narrowest <= count; c += narrowest)
            window_of<Narrowest>(from + c, reaches, channels, taps, y + c);
        for (; c < count; ++c)
            window_of<Value>(from + c, reaches, channels, taps, y + c);
        y += count;
    }
}

#define PQ_LOOPS(LEVEL, TARGET, BYTES)                                                             \
    template <typename Value>                                                                      \
    TARGET void row_##LEVEL(const Value* x, const Reaches& reaches, const std::vector<Run>& runs,  \
                            std::size_t channels, const std::array<Reach::Taps, most_dims>& taps,  \
                            Value* y) {                                                            \
        row_of<BYTES>(x, reaches, runs, channels, taps, y);                                        \
    }

PQ_LOOPS(256, PQ_TARGET_256, 32)
PQ_LOOPS(any, , 16)

#undef PQ_LOOPS

// Behind a check of lengths: that is a loop over the windows of a dimension.
void check_windows(const Reaches& reaches) {
    for (const Reach& each : reaches) {
        if (each.stride == 0 || each.dilation == 0)
            throw ArgumentFault("ShapeError", "window", "0", "strides and dilations of at least 1");
        for (std::size_t at = 0; at < each.count; ++at)
            if (each.taps(at).count == 0)
                throw ArgumentFault("ShapeError", "window", "one without a value of the source",
                                    "a value in each");
    }
}

template <typename Value>
Pass pass_of(std::size_t images, std::size_t channels, const Reaches& reaches) {
    std::size_t places = 1, windows = 1, taps = channels;
    for (const Reach& each : reaches) {
        places = bytes_of_floats("src", places, each.length) / sizeof(float);
        windows = bytes_of_floats("dst", windows, each.count) / sizeof(float);
        taps *= each.kernel;
    }
    const auto extent = [&](const char* name, std::size_t count) {
        const std::size_t rows = bytes_of_floats(name, images, count) / sizeof(float);
        return bytes_of_floats(name, rows, channels) / sizeof(float) * sizeof(Value);
    };
    const std::size_t src = extent("src", places), dst = extent("dst", windows);
    check_windows(reaches);
    const auto run = [=, runs = runs_of(reaches[2])](char* const* tensors) {
        static const auto row = widest(&row_256<Value>, &row_256<Value>, &row_any<Value>);
        const auto* const x = reinterpret_cast<const Value*>(tensors[0]);
        auto* const y = reinterpret_cast<Value*>(tensors[1]);
        const std::size_t rows = images * reaches[0].count * reaches[1].count;
        const std::size_t pieces = std::max<std::size_t>(grain / (taps * reaches[2].count), 1);
        in_parallel(rows, pieces, [&](std::size_t begin, std::size_t end) {
            for (std::size_t at = begin; at < end; ++at) {
                const std::size_t plane = at / reaches[1].count;
                const Reach::Taps outer = reaches[0].taps(plane % reaches[0].count);
                const Reach::Taps inner = reaches[1].taps(at % reaches[1].count);
                const std::size_t image = plane / reaches[0].count * reaches[0].length;
                const std::size_t first = (image + outer.first) * reaches[1].length + inner.first;
                row(x + first * reaches[2].length * channels, reaches, runs, channels,
                    {outer, inner, {}}, y + at * reaches[2].count * channels);
            }
        });
    };
    return {{{src, sizeof(Value)}, {dst, sizeof(Value)}}, run};
}

} // namespace

Pass largest_pass(const std::string& dtype, std::size_t images, std::size_t channels,
                  const std::vector<WindowDim>& dims) {
    if (dims.empty() || dims.size() > most_dims)
        throw ArgumentFault("ShapeError", "dims", std::to_string(dims.size()), "one to three");
    Reaches reaches;
    const auto first = static_cast<std::ptrdiff_t>(most_dims - dims.size());
    std::transform(dims.begin(), dims.end(), reaches.begin() + first, [](const WindowDim& of) {
        return Reach{of.length, of.count, of.kernel, of.stride, of.dilation, of.lo};
    });
    if (dtype == "f32") return pass_of<float>(images, channels, reaches);
    if (dtype == "u8") return pass_of<std::uint8_t>(images, channels, reaches);
    if (dtype == "s8") return pass_of<std::int8_t>(images, channels, reaches);
    throw ArgumentFault("DTypeError", "dtype", dtype, "f32, u8 or s8");
}

} // namespace pq
