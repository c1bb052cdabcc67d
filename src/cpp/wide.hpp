// The same loop for three instruction sets, chosen at run time. Nothing here depends on oneDNN's
// own limit.
#pragma once

#define PQ_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__)
#define PQ_TARGET_512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define PQ_TARGET_256 __attribute__((target("avx2")))
#else
#define PQ_TARGET_512
#define PQ_TARGET_256
#endif

namespace pq {

// Of the widest vectors that this CPU has and the loops are compiled for; 0 for any other CPU.
inline int vector_bits() {
#if defined(__x86_64__)
    static const int bits =
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                    ? 512
            : __builtin_cpu_supports("avx2") ? 256
                                             : 0;
    return bits;
#else
    return 0;
#endif
}

// The one of three versions of a loop that this CPU runs best.
template <typename Function>
Function widest(Function of_512, Function of_256, Function of_any) {
    const int bits = vector_bits();
    return bits == 512 ? of_512 : bits == 256 ? of_256 : of_any;
}

} // namespace pq
