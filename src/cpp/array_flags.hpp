// NumPy's flags of arrays; pybind11 keeps its own copy private.
#pragma once

namespace pq::array_flags {

constexpr int owns_data = 0x0004;
constexpr int aligned = 0x0100;
constexpr int writeable = 0x0400;

} // namespace pq::array_flags
