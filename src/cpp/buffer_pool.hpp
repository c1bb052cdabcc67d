// Memory of results, recycled: a fresh large array costs page faults comparable to the kernel.
#pragma once

#include "memory.hpp"

#include <mutex>
#include <unordered_map>

namespace pq {

class BufferPool {
public:
    struct Statistics {
        std::size_t taken = 0;      // buffers handed out since the start
        std::size_t reused = 0;     // of them, from the pool
        std::size_t held = 0;       // buffers waiting
        std::size_t held_bytes = 0; // their bytes
        std::size_t limit = std::size_t{256} << 20U;
    };

    // At least that many bytes; old content.
    AlignedBuffer take(std::size_t nbytes);
    // Keeps the buffer while the limit allows, frees it otherwise.
    void give_back(AlignedBuffer buffer) noexcept;

    Statistics statistics() const;
    void set_limit(std::size_t nbytes);
    void clear();

private:
    mutable std::mutex guard_;
    std::unordered_map<std::size_t, std::vector<AlignedBuffer>> free_; // by size class
    Statistics now_;
};

// The pool of the process; it outlives every array.
BufferPool& buffer_pool();

// A base object for an array over the buffer, which goes back to the pool with it.
py::capsule owner_of(AlignedBuffer buffer);

} // namespace pq
