#include "parallel.hpp"

#include "crew.hpp"
#include "threads.hpp"

#include <pthread.h>

namespace pq {

namespace {

// OpenMP's threads wait for work actively, for some milliseconds after the product before; to wake
// one of our own takes as long as this many pieces.
constexpr std::size_t crew_grains = 16;

std::atomic<bool> alone{false}; // in a forked child, where no thread but its own exists

bool may_share() {
    static const int registered =
            pthread_atfork(nullptr, nullptr, [] { alone.store(true, std::memory_order_relaxed); });
    return registered == 0 && !alone.load(std::memory_order_relaxed);
}

void join_team(void* spans, int thread) {
    static_cast<Spans*>(spans)->join(static_cast<std::size_t>(thread));
}

} // namespace

void run_in_parallel(std::size_t count, std::size_t grain, Spans::Work work, const void* context) {
    if (count <= grain || !may_share()) {
        if (count > 0) work(context, 0, count);
        return;
    }
    const auto allowed = std::min(static_cast<std::size_t>(get_num_threads()), Spans::most);
    if (has_team()) {
        Spans spans(count, grain, std::min(allowed, (count + grain - 1) / grain), work, context);
        run_on_team(&join_team, &spans);
        return spans.check();
    }
    const std::size_t threads = std::min(allowed, count / (crew_grains * grain));
    if (threads <= 1) return work(context, 0, count);
    Spans spans(count, grain, threads, work, context);
    join_with_crew(spans, threads - 1);
    spans.check();
}

} // namespace pq
