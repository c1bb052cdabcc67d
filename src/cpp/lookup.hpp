// Bytes by a table of 256.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pq {

// y[i] = table[x[i]] of `count` bytes side by side.
using Lookup = void (*)(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y,
                        std::size_t count);

// The fastest that this process may use.
Lookup best_lookup();

} // namespace pq
