#include "frame.hpp"

#include <utility>

namespace pq {

std::unique_ptr<Frame> FramePool::take() {
    const std::lock_guard<std::mutex> hold(guard_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Frame> frame = std::move(free_.back());
    free_.pop_back();
    return frame;
}

void FramePool::give_back(std::unique_ptr<Frame> frame) noexcept {
    try {
        const std::lock_guard<std::mutex> hold(guard_);
        free_.push_back(std::move(frame));
    } catch (...) { // no memory to keep it: the frame is simply freed
    }
}

std::size_t FramePool::size() const {
    const std::lock_guard<std::mutex> hold(guard_);
    return free_.size();
}

} // namespace pq
