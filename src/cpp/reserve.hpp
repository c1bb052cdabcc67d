// Memory that must be there before the library is called.
#pragma once

#include <cstddef>

namespace pq {

// What the library may take while it makes one primitive, or while a thread first runs one, beside
// what we allocate for it: descriptors, generated code, its threads' own data. Of 800 random
// convolutions and products none took more than 11 MB; the rest is the stack of the thread in which
// a primitive is made.
constexpr std::size_t for_making = std::size_t{32} << 20U;

// Where addresses are limited (RLIMIT_AS), throws std::bad_alloc unless so many bytes can be had
// now; they are given back at once. Where an allocation of the library's own fails, it crashes or
// ends the process; where this fails, nothing has happened yet. Another thread may take the memory
// in between.
void reserve(std::size_t nbytes);

} // namespace pq
