#include "runtime.hpp"

#include "errors.hpp"
#include "reserve.hpp"
#include "threads.hpp"

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pq {

namespace {

// Making it takes locks, the library's and the loader's, which a child forked meanwhile never gets.
std::atomic<bool> engine_begun{false};
std::atomic<bool> forked{false};

void mark_forked() {
    if (engine_begun.load()) forked.store(true);
}

struct IsaName {
    dnnl_cpu_isa_t isa;
    const char* name;
};

// Numbers, not enumerators, for what is newer than the floor's headers.
constexpr std::array<IsaName, 14> isa_names{{
        {dnnl_cpu_isa_default, "DEFAULT"},
        {dnnl_cpu_isa_sse41, "SSE41"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2_VNNI"},
        {dnnl_cpu_isa_avx2_vnni_2, "AVX2_VNNI_2"},
        {dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX512_CORE_VNNI"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX512_CORE_BF16"},
        {dnnl_cpu_isa_avx512_core_fp16, "AVX512_CORE_FP16"},
        {dnnl_cpu_isa_avx512_core_amx, "AVX512_CORE_AMX"},
        {dnnl_cpu_isa_avx512_core_amx_fp16, "AVX512_CORE_AMX_FP16"},
        {static_cast<dnnl_cpu_isa_t>(0x201ff), "AVX10_2"},
        {static_cast<dnnl_cpu_isa_t>(0x22fff), "AVX10_2_AMX_2"},
}};

} // namespace

bool is_forked() {
    return forked.load(std::memory_order_relaxed);
}

void check_not_forked() {
    if (is_forked()) throw ForkedFault();
}

void watch_for_forks() {
    pthread_atfork(nullptr, nullptr, &mark_forked);
}

void begin_use() {
    engine_begun.store(true);
}

dnnl_engine_t engine() {
    check_not_forked();
    // Leaked on purpose: primitives kept alive by the interpreter may outlive static destruction.
    static dnnl_engine_t const cpu = [] {
        require_library();
        dnnl_engine_t created = nullptr;
        engine_begun.store(true);
        const dnnl_status_t status = lib().engine_create(&created, dnnl_cpu, 0);
        if (status != dnnl_success) engine_begun.store(false);
        check(status, "dnnl_engine_create");
        return created;
    }();
    return cpu;
}

dnnl_stream_t stream() {
    thread_local Stream own;
    if (!own) {
        dnnl_stream_t created = nullptr;
        PQ_CALL(stream_create, &created, engine(), dnnl_stream_default_flags);
        own.reset(created);
    }
    return own.get();
}

Primitive make_primitive(const_dnnl_primitive_desc_t desc, int threads) {
    reserve(for_making);
    dnnl_primitive_t created = nullptr;
    dnnl_status_t status = dnnl_success;
    std::exception_ptr thrown; // the library lets through what its containers throw
    const auto make = [&] {
        try {
            const Threads held(threads);
            status = lib().primitive_create(&created, desc);
        } catch (...) {
            thrown = std::current_exception();
        }
    };
    try {
        std::thread(make).join();
    } catch (const std::system_error&) { // no thread to be had
        make();
    }
    if (thrown) std::rethrow_exception(thrown);
    check(status, "dnnl_primitive_create");
    return Primitive(created);
}

py::dict version() {
    const dnnl_version_t* found = require_library().version();
    py::dict result;
    result["major"] = found->major;
    result["minor"] = found->minor;
    result["patch"] = found->patch;
    result["hash"] = found->hash;
    result["cpu_runtime"] = found->cpu_runtime;
    result["gpu_runtime"] = found->gpu_runtime;
    return result;
}

std::string effective_isa() {
    check_not_forked();
    const dnnl_cpu_isa_t isa = require_library().get_effective_cpu_isa();
    for (const IsaName& known : isa_names)
        if (known.isa == isa) return known.name;
    return "UNKNOWN_" + std::to_string(static_cast<int>(isa));
}

std::vector<std::string> cpu_flags() {
    std::vector<std::string> flags;
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return flags;
    if ((ecx & (1U << 1)) != 0) flags.emplace_back("avx512vbmi");
    const unsigned last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
        (eax & (1U << 4)) != 0)
        flags.emplace_back("avx_vnni");
#endif
    return flags;
}

void limit_isa(const std::string& name) {
    check_not_forked();
    require_library();
    for (const IsaName& known : isa_names) {
        if (name == known.name) {
            PQ_CALL(set_max_cpu_isa, known.isa);
            return;
        }
    }
    std::string known_names;
    for (const IsaName& known : isa_names)
        known_names += (known_names.empty() ? "" : ", ") + std::string(known.name);
    throw ArgumentFault("ArgumentError", "isa", "'" + name + "'", "one of " + known_names);
}

} // namespace pq
