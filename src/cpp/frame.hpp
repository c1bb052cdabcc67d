// The mutable half of a call: memory objects whose pointers a call sets, its scratchpad, its
// argument list.
#pragma once

#include "memory.hpp"

#include <mutex>

namespace pq {

// One argument that comes with each call.
struct Slot {
    std::string name;
    int argument = 0;
    Layout layout;
    bool output = false;
    py::dtype dtype;
    std::vector<py::ssize_t> strides_bytes; // of dimensions longer than 1; others may be anything
    std::size_t extent = 0;                 // bytes from the first to one past the last element
};

struct Frame {
    std::vector<MemoryObject> slots;
    AlignedBuffer scratchpad;
    MemoryObject scratchpad_memory;
    std::vector<dnnl_exec_arg_t> arguments;
};

// Frames not in use. A call takes one and gives it back, so threads that share a primitive never
// share a scratchpad, and no call allocates once as many frames exist as threads ever ran at the
// same time.
class FramePool {
public:
    std::unique_ptr<Frame> take();
    void give_back(std::unique_ptr<Frame> frame) noexcept;
    std::size_t size() const;

private:
    mutable std::mutex guard_;
    std::vector<std::unique_ptr<Frame>> free_;
};

} // namespace pq
