#include "buffer_pool.hpp"

#include <pthread.h>
#include <utility>

namespace pq {

namespace {

// Four classes an octave: at most a fifth is wasted, and neighbouring shapes share buffers.
std::size_t size_class(std::size_t nbytes) {
    std::size_t step = 64;
    while (step * 8 < nbytes)
        step *= 2;
    return (std::max<std::size_t>(nbytes, 1) + step - 1) / step * step;
}

void give_back(PyObject* capsule) {
    auto* const owned = static_cast<AlignedBuffer*>(PyCapsule_GetPointer(capsule, nullptr));
    buffer_pool().give_back(std::move(*owned));
    delete owned;
}

} // namespace

AlignedBuffer BufferPool::take(std::size_t nbytes) {
    const std::size_t rounded = size_class(nbytes);
    {
        const std::lock_guard<std::mutex> hold(guard_);
        ++now_.taken;
        const auto found = free_.find(rounded);
        if (found != free_.end() && !found->second.empty()) {
            AlignedBuffer buffer = std::move(found->second.back());
            found->second.pop_back();
            ++now_.reused;
            --now_.held;
            now_.held_bytes -= rounded;
            return buffer;
        }
    }
    return AlignedBuffer(rounded);
}

void BufferPool::give_back(AlignedBuffer buffer) noexcept {
    try {
        const std::lock_guard<std::mutex> hold(guard_);
        const std::size_t nbytes = buffer.nbytes();
        if (nbytes > now_.limit - std::min(now_.limit, now_.held_bytes)) return;
        free_[nbytes].push_back(std::move(buffer));
        ++now_.held;
        now_.held_bytes += nbytes;
    } catch (...) { // no memory to keep it: the buffer is simply freed
    }
}

BufferPool::Statistics BufferPool::statistics() const {
    const std::lock_guard<std::mutex> hold(guard_);
    return now_;
}

void BufferPool::set_limit(std::size_t nbytes) {
    const std::lock_guard<std::mutex> hold(guard_);
    now_.limit = nbytes;
    if (now_.held_bytes <= nbytes) return;
    free_.clear();
    now_.held = now_.held_bytes = 0;
}

void BufferPool::clear() {
    const std::lock_guard<std::mutex> hold(guard_);
    free_.clear();
    now_.held = now_.held_bytes = 0;
}

BufferPool& buffer_pool() {
    // Leaked on purpose: arrays may die after static destruction.
    static BufferPool* pool = new BufferPool();
    // Another thread may have held the pool's lock when this process was forked.
    static const int registered = pthread_atfork(nullptr, nullptr, [] { pool = new BufferPool(); });
    static_cast<void>(registered);
    return *pool;
}

py::capsule owner_of(AlignedBuffer buffer) {
    auto owned = std::make_unique<AlignedBuffer>(std::move(buffer));
    PyObject* const made = PyCapsule_New(owned.get(), nullptr, &give_back);
    if (made == nullptr) throw py::error_already_set();
    owned.release(); // the capsule deletes it
    return py::reinterpret_steal<py::capsule>(made);
}

} // namespace pq
