#include "threads.hpp"

#include "errors.hpp"
#include "library.hpp"
#include "reserve.hpp"
#include "runtime.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <thread>

namespace pq {

namespace {

std::atomic<int> wanted{0}; // 0: never set
thread_local int held = 0;  // by the innermost Threads; 0: none
thread_local int team = 0;  // of this thread when it last ran something

struct OpenMP {
    void (*set_num_threads)(int) = nullptr;
    int (*get_max_threads)() = nullptr;
    int (*get_thread_num)() = nullptr;
    // What compilers make of a parallel region; LLVM's and Intel's libraries have it, too.
    void (*parallel)(void (*part)(void*), void*, unsigned threads, unsigned flags) = nullptr;

    OpenMP() {
        set_num_threads = reinterpret_cast<void (*)(int)>(find_symbol("omp_set_num_threads"));
        get_max_threads = reinterpret_cast<int (*)()>(find_symbol("omp_get_max_threads"));
        get_thread_num = reinterpret_cast<int (*)()>(find_symbol("omp_get_thread_num"));
        parallel = reinterpret_cast<decltype(parallel)>(find_symbol("GOMP_parallel"));
    }
};

const OpenMP& openmp() {
    static const OpenMP functions;
    return functions;
}

// Binary layout of oneTBB's d1::global_control, part of the ABI that libtbb.so.12 keeps stable.
// Written out because the runtime wheel comes without headers.
struct GlobalControl {
    std::size_t value = 0;
    std::intptr_t reserved = 0;
    int parameter = 0; // max_allowed_parallelism
};

struct TBB {
    void (*create)(GlobalControl&) = nullptr;
    void (*destroy)(GlobalControl&) = nullptr;
    std::size_t (*active_value)(int) = nullptr;

    TBB() {
        create = reinterpret_cast<void (*)(GlobalControl&)>(
                find_symbol("_ZN3tbb6detail2r16createERNS0_2d114global_controlE"));
        destroy = reinterpret_cast<void (*)(GlobalControl&)>(
                find_symbol("_ZN3tbb6detail2r17destroyERNS0_2d114global_controlE"));
        active_value = reinterpret_cast<std::size_t (*)(int)>(
                find_symbol("_ZN3tbb6detail2r127global_control_active_valueEi"));
    }
};

const TBB& tbb() {
    static const TBB functions;
    return functions;
}

bool uses_openmp() {
    static const bool uses = require_library().version()->cpu_runtime == DNNL_RUNTIME_OMP;
    return uses;
}

void limit_tbb(int n) {
    static std::mutex guard;
    static GlobalControl control;
    static bool active = false;
    const std::lock_guard<std::mutex> hold(guard);
    if (active) tbb().destroy(control);
    control = GlobalControl{};
    control.value = static_cast<std::size_t>(n);
    tbb().create(control);
    active = true;
}

// Of a thread that is started now.
std::size_t stack_bytes() {
    pthread_attr_t attr;
    std::size_t nbytes = 0;
    if (pthread_attr_init(&attr) != 0) return nbytes;
    pthread_attr_getstacksize(&attr, &nbytes);
    pthread_attr_destroy(&attr);
    return nbytes;
}

} // namespace

int get_num_threads() {
    check_not_forked();
    if (uses_openmp()) {
        if (held != 0) return held;
        if (wanted.load() != 0) return wanted.load();
        return openmp().get_max_threads != nullptr ? openmp().get_max_threads() : 1;
    }
    if (tbb().active_value == nullptr) return 1;
    const auto allowed = static_cast<int>(std::min<std::size_t>(tbb().active_value(0), 1U << 20U));
    if (wanted.load() != 0) return std::min(allowed, wanted.load());
    return allowed;
}

void set_num_threads(int n) {
    check_not_forked();
    if (n < 1) throw ArgumentFault("ArgumentError", "n", std::to_string(n), "at least one thread");
    const bool possible =
            uses_openmp() ? openmp().set_num_threads != nullptr : tbb().create != nullptr;
    if (!possible) {
        throw ArgumentFault("ArgumentError", "n", std::to_string(n),
                            "a library whose threading runtime can be limited (this one is "
                            "sequential or unknown)");
    }
    wanted.store(n);
    if (!uses_openmp()) limit_tbb(n);
}

Threads::Threads(int n) : outer_(held) {
    if (!uses_openmp() || openmp().set_num_threads == nullptr) return;
    held = n;
    const int now = openmp().get_max_threads();
    if (now == n) return;
    own_ = now;
    openmp().set_num_threads(n);
}

Threads::~Threads() {
    held = outer_;
    if (own_ != 0) openmp().set_num_threads(own_);
}

void reserve_team(int threads) {
    if (threads > team) {
        const int others = uses_openmp() ? threads - std::max(team, 1) : 0;
        reserve(for_making + static_cast<std::size_t>(others) * stack_bytes());
    }
    team = threads;
}

bool has_team() {
    return uses_openmp() && openmp().parallel != nullptr && openmp().get_thread_num != nullptr;
}

void run_on_team(int threads, void (*part)(void* context, int thread), void* context) {
    struct Region {
        void (*part)(void*, int);
        void* context;
    } region{part, context};
    const auto call = [](void* given) {
        const Region& of = *static_cast<Region*>(given);
        of.part(of.context, openmp().get_thread_num());
    };
    reserve_team(threads);
    const Threads all(threads); // to have fewer for once ends some, which must be made again
    openmp().parallel(call, &region, 0, 0);
}

} // namespace pq
