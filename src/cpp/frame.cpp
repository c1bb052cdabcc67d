#include "frame.hpp"

#include <utility>

namespace pq {

std::unique_ptr<Frame> FramePool::take() {
    if (Frame* const spare = spare_.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<Frame>(spare);
    const std::lock_guard<std::mutex> hold(guard_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Frame> frame = std::move(free_.back());
    free_.pop_back();
    return frame;
}

void FramePool::give_back(std::unique_ptr<Frame> frame) noexcept {
    Frame* none = nullptr;
    if (spare_.compare_exchange_strong(none, frame.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        frame.release(); // the pool's own now
        return;
    }
    try {
        const std::lock_guard<std::mutex> hold(guard_);
        free_.push_back(std::move(frame));
    } catch (...) { // no memory to keep it: the frame is simply freed
    }
}

std::size_t FramePool::size() const {
    const std::lock_guard<std::mutex> hold(guard_);
    return free_.size() + (spare_.load(std::memory_order_relaxed) != nullptr ? 1 : 0);
}

} // namespace pq
