// Numbers from 0 to a count, dealt out to several threads in pieces.
#pragma once

#include "common.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>

namespace pq {

// One span for each thread, which begins with its own, so that a repeated pass finds its data in
// the cache where it was, and goes on with what others have left. A thread that never comes is not
// missed.
class Spans {
public:
    using Work = void (*)(const void* context, std::size_t begin, std::size_t end);

    static constexpr std::size_t most = 64;

    // `grain`: of a piece, at least 1; `threads`: from 1 to `most`.
    Spans(std::size_t count, std::size_t grain, std::size_t threads, Work work, const void* context)
        : work_(work), context_(context), count_(count), grain_(grain), threads_(threads) {
        const std::size_t grains = (count + grain - 1) / grain;
        for (std::size_t i = 0; i < threads; ++i)
            next_[i].value.store(begin_of(i, grains), std::memory_order_relaxed);
        grains_ = grains;
    }

    // What the thread of that number does; returns when no piece is left that nobody has begun.
    void join(std::size_t thread) noexcept {
        try {
            for (std::size_t i = 0; i < threads_; ++i)
                finish((thread + i) % threads_);
        } catch (...) {
            const std::lock_guard<std::mutex> hold(guard_);
            if (!fault_) fault_ = std::current_exception();
        }
    }

    // Throws the first fault of any thread, once all are done.
    void check() const {
        if (fault_) std::rethrow_exception(fault_);
    }

private:
    // Apart in memory, for each is written by another thread.
    struct alignas(64) Next {
        std::atomic<std::size_t> value{0};
    };

    std::size_t begin_of(std::size_t span, std::size_t grains) const {
        return grains / threads_ * span + std::min(span, grains % threads_);
    }

    void finish(std::size_t span) {
        const std::size_t end = begin_of(span + 1, grains_);
        while (true) {
            const std::size_t at = next_[span].value.fetch_add(1, std::memory_order_relaxed);
            if (at >= end) return;
            work_(context_, at * grain_, std::min(count_, (at + 1) * grain_));
        }
    }

    Work work_;
    const void* context_;
    std::size_t count_, grain_, threads_, grains_ = 0;
    std::array<Next, most> next_;
    std::mutex guard_;
    std::exception_ptr fault_;
};

} // namespace pq
