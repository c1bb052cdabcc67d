#include "quantize.hpp"

#include "parallel.hpp"
#include "wide.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

namespace pq {

namespace {

constexpr std::size_t lanes = 64;
constexpr std::size_t grain = std::size_t{32} << 10U; // values of a piece for one thread

struct Ends {
    float lo, hi;
};

PQ_INLINE Ends range_of(const float* x, std::size_t count) {
    float lo[lanes] = {}, hi[lanes] = {}, odd[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t j = 0; j < lanes; ++j) {
            const float value = x[i + j];
            lo[j] = value < lo[j] ? value : lo[j];
            hi[j] = value > hi[j] ? value : hi[j];
            odd[j] += value - value; // 0, or NaN for good
        }
    }
    for (; i < count; ++i) {
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
        odd[0] += x[i] - x[i];
    }
    for (std::size_t j = 1; j < lanes; ++j) {
        lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
        hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
        odd[0] += odd[j];
    }
    return {lo[0] + odd[0], hi[0] + odd[0]};
}

template <typename Code>
PQ_INLINE bool codes_of(const float* __restrict x, std::size_t count, float scale,
                        std::int32_t zero_point, Code* __restrict codes) {
    // Clamping before the rounding is the same: the bounds are whole.
    const auto lo = static_cast<float>(std::numeric_limits<Code>::min() - zero_point);
    const auto hi = static_cast<float>(std::numeric_limits<Code>::max() - zero_point);
    std::int32_t odd = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float ratio = x[i] / scale;
        odd |= ratio != ratio;
        const float low = ratio > lo ? ratio : lo;
        const float level = (low < hi ? low : hi) + rounder - rounder;
        codes[i] = static_cast<Code>(static_cast<std::int32_t>(level) + zero_point);
    }
    return odd == 0;
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    TARGET Ends range_##LEVEL(const float* x, std::size_t count) {                                 \
        return range_of(x, count);                                                                 \
    }                                                                                              \
    template <typename Code>                                                                       \
    TARGET bool codes_##LEVEL(const float* x, std::size_t count, float scale,                      \
                              std::int32_t zero_point, Code* codes) {                              \
        return codes_of(x, count, scale, zero_point, codes);                                       \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

} // namespace

void ranges(const float* values, std::size_t rows, std::size_t columns, float* lo, float* hi) {
    static const auto range = widest(&range_512, &range_256, &range_any);
    if (rows == 1) {
        std::mutex guard;
        // Sums keep what is not finite, minima would not.
        Ends all{0, 0}, odd{0, 0};
        in_parallel(columns, grain, [&](std::size_t begin, std::size_t end) {
            const Ends ends = range(values + begin, end - begin);
            const std::lock_guard<std::mutex> hold(guard);
            all = {std::min(all.lo, ends.lo), std::max(all.hi, ends.hi)};
            odd = {odd.lo + (ends.lo - ends.lo), odd.hi + (ends.hi - ends.hi)};
        });
        lo[0] = all.lo + odd.lo;
        hi[0] = all.hi + odd.hi;
        return;
    }
    const std::size_t rows_of_grain =
            std::max<std::size_t>(grain / std::max<std::size_t>(columns, 1), 1);
    in_parallel(rows, rows_of_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            const Ends ends = range(values + row * columns, columns);
            lo[row] = ends.lo;
            hi[row] = ends.hi;
        }
    });
}

bool scale_of_range(float lo, float hi, bool is_symmetric, float& scale, std::int32_t& zero_point) {
    constexpr float highest_u8 = 255.0f, highest_s8 = 127.0f;
    const float span = is_symmetric ? std::max(-lo, hi) / highest_s8 : (hi - lo) / highest_u8;
    if (!std::isfinite(lo) || !std::isfinite(hi) || !std::isfinite(span)) return false;
    scale = lo == 0 && hi == 0 ? 1.0f : std::max(span, std::numeric_limits<float>::min());
    const float exact = is_symmetric ? 0.0f : std::nearbyint(0.0f - lo / scale);
    zero_point = static_cast<std::int32_t>(std::min(std::max(exact, 0.0f), highest_u8));
    return true;
}

template <typename Code>
bool quantize(const float* values, std::size_t rows, std::size_t columns, const float* scales,
              const std::int32_t* zero_points, Code* codes) {
    static const auto convert = widest(&codes_512<Code>, &codes_256<Code>, &codes_any<Code>);
    std::atomic<bool> all_numbers{true};
    in_parallel(rows * columns, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end;) {
            const std::size_t row = i / columns;
            const std::size_t count = std::min((row + 1) * columns, end) - i;
            if (!convert(values + i, count, scales[row], zero_points[row], codes + i))
                all_numbers.store(false, std::memory_order_relaxed);
            i += count;
        }
    });
    return all_numbers;
}

namespace {

constexpr std::size_t together = 512; // places whose codes lie in the nearest cache, by channel

// codes[place][channel] = parts[channel][place], bytes.
template <std::size_t channels>
void interleave(const std::uint8_t (*parts)[together], std::size_t count, std::uint8_t* codes) {
    const auto place = [&](std::size_t i) {
        std::uint32_t bytes = 0;
        for (std::size_t c = 0; c < channels; ++c)
            bytes |= static_cast<std::uint32_t>(parts[c][i]) << (8 * c);
        return bytes;
    };
    // A word each, over which the next one is written; the last is not another's to write over.
    for (std::size_t i = 0; i + 1 < count; ++i) {
        const std::uint32_t bytes = place(i);
        std::memcpy(codes + i * channels, &bytes, sizeof bytes);
    }
    const std::uint32_t bytes = place(count - 1);
    std::memcpy(codes + (count - 1) * channels, &bytes, channels);
}

} // namespace

template <typename Code>
bool quantize_last(const float* values, std::size_t images, std::size_t channels,
                   std::size_t places, float scale, std::int32_t zero_point, Code* codes) {
    static const auto convert = widest(&codes_512<Code>, &codes_256<Code>, &codes_any<Code>);
    constexpr decltype(&interleave<2>) interleaves[] = {&interleave<2>, &interleave<3>,
                                                        &interleave<4>};
    const auto store = interleaves[channels - 2];
    std::atomic<bool> all_numbers{true};
    in_parallel(images * places, grain / 4, [&](std::size_t begin, std::size_t end) {
        std::uint8_t parts[most_interleaved][together];
        for (std::size_t i = begin; i < end;) {
            const std::size_t image = i / places, at = i % places;
            const std::size_t count = std::min({places - at, end - i, together});
            for (std::size_t c = 0; c < channels; ++c) {
                const float* const x = values + (image * channels + c) * places + at;
                if (!convert(x, count, scale, zero_point, reinterpret_cast<Code*>(parts[c])))
                    all_numbers.store(false, std::memory_order_relaxed);
            }
            store(parts, count, reinterpret_cast<std::uint8_t*>(codes) + i * channels);
            i += count;
        }
    });
    return all_numbers;
}

template bool quantize_last(const float*, std::size_t, std::size_t, std::size_t, float,
                            std::int32_t, std::uint8_t*);
template bool quantize_last(const float*, std::size_t, std::size_t, std::size_t, float,
                            std::int32_t, std::int8_t*);
template bool quantize(const float*, std::size_t, std::size_t, const float*, const std::int32_t*,
                       std::uint8_t*);
template bool quantize(const float*, std::size_t, std::size_t, const float*, const std::int32_t*,
                       std::int8_t*);

} // namespace pq
