// The same loop for three instruction sets, chosen at run time. As oneDNN does, they keep to
// ONEDNN_MAX_CPU_ISA, so that a process that stands for another machine is as fast as that one.
#pragma once

#define PQ_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__)
#define PQ_TARGET_512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define PQ_TARGET_256 __attribute__((target("avx2")))
#define PQ_TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#else
#define PQ_TARGET_512
#define PQ_TARGET_256
#endif

namespace pq {

// Of the widest vectors that this process may use and the loops are compiled for; 0 for plain ones.
int vector_bits();

// Whether loops of PQ_TARGET_VNNI may run.
bool multiplies_bytes();

// The one of three versions of a loop that this CPU runs best.
template <typename Function>
Function widest(Function of_512, Function of_256, Function of_any) {
    const int bits = vector_bits();
    return bits == 512 ? of_512 : bits == 256 ? of_256 : of_any;
}

} // namespace pq
