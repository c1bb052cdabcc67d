// Float values to 8-bit codes with scales that a call brings along, in one pass over memory.
#pragma once

#include "common.hpp"

namespace pq {

// The least and the greatest of each row, and 0; NaN in both where a value is not finite.
void ranges(const float* values, std::size_t rows, std::size_t columns, float* lo, float* hi);

// Scale and zero point of a range, in float32, operation by operation as NumPy has it: of u8, or of
// s8 where it is symmetric. False where it is not finite.
bool scale_of_range(float lo, float hi, bool is_symmetric, float& scale, std::int32_t& zero_point);

// q = clamp(rne(x / scale[row]) + zero_point[row], qmin, qmax), every operation in float32.
// Infinities saturate. Returns false when a value is NaN; codes are unspecified then.
template <typename Code>
bool quantize(const float* values, std::size_t rows, std::size_t columns, const float* scales,
              const std::int32_t* zero_points, Code* codes);

constexpr std::size_t most_interleaved = 4;

// The same of (images, channels, places) without gaps, into (images, places, channels): of 2 to
// `most_interleaved` channels.
template <typename Code>
bool quantize_last(const float* values, std::size_t images, std::size_t channels,
                   std::size_t places, float scale, std::int32_t zero_point, Code* codes);

} // namespace pq
