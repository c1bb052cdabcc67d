#include "wide.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace pq {

namespace {

std::string limit_name() {
    const char* const given = std::getenv("ONEDNN_MAX_CPU_ISA");
    std::string name = given == nullptr ? "" : given;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    return name;
}

int limit() {
    const std::string name = limit_name();
    if (name == "SSE41" || name == "AVX") return 0;
    return name.rfind("AVX2", 0) == 0 ? 256 : 512;
}

int of_this_cpu() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return 512;
    }
    if (__builtin_cpu_supports("avx2")) return 256;
#endif
    return 0;
}

} // namespace

int vector_bits() {
    static const int bits = std::min(limit(), of_this_cpu());
    return bits;
}

bool multiplies_bytes() {
#if defined(__x86_64__)
    static const bool does = vector_bits() == 512 && limit_name() != "AVX512_CORE" &&
                             __builtin_cpu_supports("avx512vnni");
    return does;
#else
    return false;
#endif
}

bool multiplies_bytes_of_256() {
#if defined(__x86_64__)
    static const bool does =
            vector_bits() == 256 && limit_name() != "AVX2" && __builtin_cpu_supports("avxvnni");
    return does;
#else
    return false;
#endif
}

} // namespace pq
