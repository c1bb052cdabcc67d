#include "parallel.hpp"

#include "runtime.hpp"
#include "threads.hpp"

#include <cstring>
#include <pthread.h>

namespace pq {

namespace {

std::atomic<bool> alone{false}; // in a forked child, where no thread but its own exists

bool may_share() {
    static const int registered =
            pthread_atfork(nullptr, nullptr, [] { alone.store(true, std::memory_order_relaxed); });
    // The library's own threads may be gone without a pass of ours before the fork.
    return registered == 0 && !alone.load(std::memory_order_relaxed) && !is_forked();
}

void join_team(void* spans, int thread) {
    static_cast<Spans*>(spans)->join(static_cast<std::size_t>(thread));
}

} // namespace

void run_in_parallel(std::size_t count, std::size_t grain, Spans::Work work, const void* context) {
    std::size_t threads = std::min(count / grain, Spans::most);
    if (threads > 1 && may_share() && has_team()) {
        const int team = get_num_threads();
        threads = std::min(threads, static_cast<std::size_t>(team));
        if (threads > 1) {
            Spans spans(count, grain, threads, work, context);
            run_on_team(team, &join_team, &spans);
            return spans.check();
        }
    }
    if (count > 0) work(context, 0, count);
}

void copy_bytes(const void* from, void* to, std::size_t nbytes) {
    constexpr std::size_t grain = std::size_t{32} << 10U;
    auto* const target = static_cast<char*>(to);
    const auto* const source = static_cast<const char*>(from);
    in_parallel(nbytes, grain, [&](std::size_t begin, std::size_t end) {
        std::memcpy(target + begin, source + begin, end - begin);
    });
}

} // namespace pq
