// float32 to the 16-bit types and back, one pass over memory on every CPU alike. The library has
// plain loops for that where the CPU has no instruction (a hundred times slower), and where it has
// one, subnormal bf16 becomes 0.
#pragma once

#include "common.hpp"

namespace pq {

enum class Half { bf16, f16 };

// To nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
void narrow(Half type, const float* values, std::size_t count, std::uint16_t* halves);

// Exact.
void widen(Half type, const std::uint16_t* halves, std::size_t count, float* values);

} // namespace pq
