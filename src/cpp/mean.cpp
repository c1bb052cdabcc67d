#include "errors.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "wide.hpp"

#include <algorithm>
#include <cmath>

namespace pq {

namespace {

constexpr std::size_t lanes = 64;
constexpr std::size_t most_rows = 257; // whose sums of bytes fit into 16 bits

// Adds `width` columns of `rows` rows, which lie `step` bytes apart, to their sums.
template <std::size_t width>
PQ_INLINE void add_some(const std::uint8_t* x, std::size_t rows, std::size_t step,
                        std::uint8_t flip, std::int64_t* sums) {
    for (std::size_t row = 0; row < rows; row += most_rows) {
        const std::size_t end = std::min(row + most_rows, rows);
        std::uint16_t part[width] = {};
        for (std::size_t i = row; i < end; ++i)
            for (std::size_t j = 0; j < width; ++j)
                part[j] = static_cast<std::uint16_t>(part[j] + (x[i * step + j] ^ flip));
        for (std::size_t j = 0; j < width; ++j)
            sums[j] += part[j];
    }
}

PQ_INLINE void add_columns(const std::uint8_t* x, std::size_t rows, std::size_t step,
                           std::size_t columns, std::uint8_t flip, std::int64_t* sums) {
    constexpr std::size_t few = 16;
    if (columns == lanes) return add_some<lanes>(x, rows, step, flip, sums);
    std::size_t j = 0;
    for (; j + few <= columns; j += few)
        add_some<few>(x + j, rows, step, flip, sums + j);
    for (; j < columns; ++j)
        add_some<1>(x + j, rows, step, flip, sums + j);
}

using Columns = void (*)(const std::uint8_t* x, std::size_t rows, std::size_t step,
                         std::size_t columns, std::uint8_t flip, std::int64_t* sums);

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET void columns_##LEVEL(const std::uint8_t* x, std::size_t rows, std::size_t step,         \
                                std::size_t columns, std::uint8_t flip, std::int64_t* sums) {      \
        add_columns(x, rows, step, columns, flip, sums);                                           \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

std::int64_t checked(const char* argument, const Codes& of) {
    const std::int64_t least = of.is_signed ? -128 : 0;
    if (!(of.scale > 0) || !std::isfinite(of.scale))
        throw ArgumentFault("ArgumentError", argument, std::to_string(of.scale),
                            "a scale that is positive and finite");
    if (of.zero_point < least || of.zero_point > least + 255)
        throw ArgumentFault("ArgumentError", argument, std::to_string(of.zero_point),
                            "a zero point that is a code");
    return least;
}

} // namespace

Pass mean_pass(std::size_t images, std::size_t places, std::size_t channels, const Codes& src,
               const Codes& dst) {
    const std::size_t size = bytes_of_floats("places", places, channels) / sizeof(float);
    const std::size_t extent = bytes_of_floats("images", images, size) / sizeof(float);
    // The least code is the byte 0 once the upper bit of signed ones is turned over.
    const std::int64_t src_least = checked("src", src), dst_least = checked("dst", dst);
    const auto src_flip = static_cast<std::uint8_t>(src_least & 0xff);
    const auto dst_flip = static_cast<std::uint8_t>(dst_least & 0xff);
    const std::int64_t of_zero = static_cast<std::int64_t>(places) * (src.zero_point - src_least);
    const std::int64_t dst_zero = dst.zero_point - dst_least;
    const double by = static_cast<double>(src.scale);
    const double parts = static_cast<double>(places) * static_cast<double>(dst.scale);
    const std::size_t blocks = (channels + lanes - 1) / lanes;
    const auto run = [=](char* const* tensors) {
        static const Columns add = widest(&columns_512, &columns_256, &columns_any);
        const auto* const x = reinterpret_cast<const std::uint8_t*>(tensors[0]);
        auto* const y = reinterpret_cast<std::uint8_t*>(tensors[1]);
        const std::size_t grain =
                std::max<std::size_t>((std::size_t{64} << 10U) / places / lanes, 1);
        in_parallel(images * blocks, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t image = i / blocks, first = i % blocks * lanes;
                const std::size_t columns = std::min(lanes, channels - first);
                std::int64_t sums[lanes] = {};
                add(x + image * size + first, places, channels, columns, src_flip, sums);
                for (std::size_t j = 0; j < columns; ++j) {
                    const double level = static_cast<double>(sums[j] - of_zero) * by / parts;
                    const double code = std::nearbyint(level) + static_cast<double>(dst_zero);
                    const auto stored = static_cast<std::uint8_t>(std::clamp(code, 0.0, 255.0));
                    y[image * channels + first + j] = stored ^ dst_flip;
                }
            }
        });
    };
    return {{{extent, 1}, {images * channels, 1}}, run};
}

} // namespace pq
