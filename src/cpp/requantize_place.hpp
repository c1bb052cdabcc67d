// Where a loop over accumulators is among the channels, and how it goes on.
#pragma once

#include "requantize_rules.hpp"

namespace pq {

// Accumulators that a loop without branches works on: whole vectors on their way in and out.
constexpr std::size_t chunk_size = 64;
// The distance, in accumulators, of what is asked for while a chunk is computed. The hardware's own
// prefetching ends with each page, which is half of it.
constexpr std::size_t ahead = 2048;

// The first accumulator belongs to `channel`. The columns go on behind the last channel with the
// first ones again, far enough for one chunk.
struct Place {
    const Columns& columns;
    std::size_t channel, channels;
};

// The channel of the first accumulator of each chunk.
struct Walk {
    std::size_t channel, step, channels;

    PQ_INLINE Walk(const Place& place, bool uniform)
        : channel(place.channel), step(uniform ? 0 : chunk_size % place.channels),
          channels(place.channels) {}

    PQ_INLINE void next() {
        channel += step;
        if (channel >= channels) channel -= channels;
    }
};

// Addresses behind the end may be asked for: nothing is read.
template <bool writes, typename T>
PQ_INLINE void prefetch(const T* start) {
    constexpr std::size_t line = 64;
    const auto first = reinterpret_cast<std::uintptr_t>(start) + ahead * sizeof(T);
    for (std::size_t at = 0; at < chunk_size * sizeof(T); at += line)
        __builtin_prefetch(reinterpret_cast<const void*>(first + at), writes);
}

} // namespace pq
