// The mutable half of a call: memory objects whose pointers a call sets, its scratchpad, its
// argument list.
#pragma once

#include "slot.hpp"

#include <atomic>
#include <mutex>

namespace pq {

// A copy of an argument in the primitive's own layout, beside the array of a call.
struct Inside {
    Memory memory;
    MemoryObject corner; // the same bytes: the elements that arrays have
    AlignedBuffer scratchpad;
    MemoryObject scratchpad_memory;
};

struct Frame {
    std::vector<MemoryObject> slots;
    std::vector<void*> data; // the pointers that they have
    AlignedBuffer scratchpad;
    MemoryObject scratchpad_memory;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<std::unique_ptr<Inside>> inside; // one a slot, null where nothing is copied
};

// Frames not in use. A call takes one and gives it back, so threads that share a primitive never
// share a scratchpad, and no call allocates once as many frames exist as threads ever ran at the
// same time. One frame waits beside the others: a thread that is alone never takes the lock.
class FramePool {
public:
    FramePool() = default;
    ~FramePool() { delete spare_.load(); }
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    std::unique_ptr<Frame> take();
    void give_back(std::unique_ptr<Frame> frame) noexcept;
    std::size_t size() const;

private:
    std::atomic<Frame*> spare_{nullptr};
    mutable std::mutex guard_;
    std::vector<std::unique_ptr<Frame>> free_;
};

} // namespace pq
