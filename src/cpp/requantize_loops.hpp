// A rule over neighbouring accumulators, for three instruction sets, chosen at run time.
#pragma once

#include "requantize_place.hpp"

#include <algorithm>
#include <array>

namespace pq {

template <typename Rule, bool uniform, typename Out>
PQ_INLINE void chunk(const Columns& columns, const std::int32_t* __restrict acc,
                     Out* __restrict dst, std::uint32_t& fault) {
    const Constants first = columns.at(0);
    std::array<std::int32_t, chunk_size> results;
    std::uint32_t faults = 0;
    for (std::size_t i = 0; i < chunk_size; ++i)
        results[i] = Rule::template apply<Out>(acc[i], uniform ? first : columns.at(i), faults);
    // Apart, for compilers choose one width of vectors for a loop.
    for (std::size_t i = 0; i < chunk_size; ++i)
        dst[i] = static_cast<Out>(results[i]);
    fault |= faults;
}

// Fewer accumulators than a chunk has.
template <typename Rule, bool uniform, typename Out>
PQ_INLINE void rest(const Columns& columns, const std::int32_t* acc, Out* dst, std::size_t count,
                    std::uint32_t& fault) {
    if (uniform) {
        // The last one again, which is at fault only if it was.
        std::array<std::int32_t, chunk_size> padded;
        std::array<Out, chunk_size> results;
        for (std::size_t i = 0; i < chunk_size; ++i)
            padded[i] = acc[std::min(i, count - 1)];
        chunk<Rule, uniform>(columns, padded.data(), results.data(), fault);
        std::copy_n(results.begin(), count, dst);
    } else {
        for (std::size_t i = 0; i < count; ++i)
            dst[i] = static_cast<Out>(Rule::template apply<Out>(acc[i], columns.at(i), fault));
    }
}

// All of the place's channel when `uniform`, otherwise of it and those after. True when an
// accumulator left 32 bits (for Exact: or must be looked at again).
template <typename Rule, bool uniform, typename Out>
PQ_INLINE bool sweep(const Place& place, const std::int32_t* acc, Out* dst, std::size_t count) {
    const Columns columns = place.columns;
    std::uint32_t fault = 0;
    std::size_t i = 0;
    Walk walk(place, uniform);
    for (; i + chunk_size <= count; i += chunk_size, walk.next()) {
        if (!Rule::after_products) prefetch<false>(acc + i);
        prefetch<true>(dst + i);
        chunk<Rule, uniform>(columns.from(walk.channel), acc + i, dst + i, fault);
    }
    if (i < count)
        rest<Rule, uniform>(columns.from(walk.channel), acc + i, dst + i, count - i, fault);
    return fault != 0;
}

#define PQ_LOOP(LEVEL, TARGET)                                                                     \
    template <typename Rule, bool uniform, typename Out>                                           \
    TARGET bool sweep_##LEVEL(const Place& place, const std::int32_t* acc, void* dst,              \
                              std::size_t count) {                                                 \
        return sweep<Rule, uniform>(place, acc, static_cast<Out*>(dst), count);                    \
    }

PQ_LOOP(512, PQ_TARGET_512)
PQ_LOOP(256, PQ_TARGET_256)
PQ_LOOP(any, )

#undef PQ_LOOP

using Sweep = bool (*)(const Place&, const std::int32_t* acc, void* dst, std::size_t count);

struct Loops {
    Sweep each = nullptr; // neighbours belong to neighbouring channels
    Sweep same = nullptr; // to the same one
};

template <typename Rule, typename Out>
Loops loops() {
    switch (vector_bits()) {
    case 512:
        return {&sweep_512<Rule, false, Out>, &sweep_512<Rule, true, Out>};
    case 256:
        return {&sweep_256<Rule, false, Out>, &sweep_256<Rule, true, Out>};
    default:
        return {&sweep_any<Rule, false, Out>, &sweep_any<Rule, true, Out>};
    }
}

} // namespace pq
