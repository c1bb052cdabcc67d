// The first half of integer requantizers: (acc + bias) · multiplier, of which 32 bits go on. What
// compilers make of the plain loop takes twice the time: they widen both factors, where CPUs
// multiply every other number of a vector as it is.
#pragma once

#include "requantize_place.hpp"

namespace pq {

// What is kept of the product's 64 bits.
enum class Upper {
    cut,     // p >> 32
    sticky,  // the same, and its last bit is set where any that is cut off was
    doubled, // (p + 2^30) >> 31, which must fit: not -2^31 times itself
};

// True when acc + bias left 32 bits. `upper` has room for whole chunks.
using Products = bool (*)(const Place& place, const std::int32_t* acc, std::int32_t* upper,
                          std::size_t count);

struct BothProducts {
    Products each = nullptr; // neighbours belong to neighbouring channels
    Products same = nullptr; // to the same one
};

// For this CPU.
BothProducts products(Upper kept);

} // namespace pq
