// The same loop for three instruction sets, chosen at run time. As oneDNN does, they keep to
// ONEDNN_MAX_CPU_ISA, so that a process that stands for another machine is as fast as that one.
#pragma once

#define PQ_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__)
#define PQ_TARGET_512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define PQ_TARGET_256 __attribute__((target("avx2")))
#define PQ_TARGET_256_VNNI __attribute__((target("avx2,avxvnni")))
#define PQ_TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#else
#define PQ_TARGET_512
#define PQ_TARGET_256
#endif

namespace pq {

// Of the widest vectors that this process may use and the loops are compiled for; 0 for plain ones.
int vector_bits();

// Whether loops of PQ_TARGET_VNNI may run; of PQ_TARGET_256_VNNI, where vectors are no wider.
bool multiplies_bytes();
bool multiplies_bytes_of_256();

// Adding and taking away 1.5 · 2^23 rounds a float below 2^22 to the nearest even whole number,
// whose lowest bits the sum has.
inline constexpr float rounder = 12582912.0f;

// Vectors of a target's own width: of twice that, compilers make loops over memory. Loose:
// anywhere.
#define PQ_VECTOR(BYTES, ...) __attribute__((vector_size(BYTES), __VA_ARGS__))
struct Of512 {
    using Vector = float __attribute__((vector_size(64)));
    using Loose = float PQ_VECTOR(64, aligned(4), may_alias);
};
struct Of256 {
    using Vector = float __attribute__((vector_size(32)));
    using Loose = float PQ_VECTOR(32, aligned(4), may_alias);
};
struct Of128 {
    using Vector = float __attribute__((vector_size(16)));
    using Loose = float PQ_VECTOR(16, aligned(4), may_alias);
};
#undef PQ_VECTOR

// The one of three versions of a loop that this CPU runs best.
template <typename Function>
Function widest(Function of_512, Function of_256, Function of_any) {
    const int bits = vector_bits();
    return bits == 512 ? of_512 : bits == 256 ? of_256 : of_any;
}

} // namespace pq
