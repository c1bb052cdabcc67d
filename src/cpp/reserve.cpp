#include "reserve.hpp"

#include <new>
#include <sys/mman.h>

namespace pq {

void reserve(std::size_t nbytes) {
    // Not malloc: a large block that it has freed changes how it keeps later ones.
    void* const at = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    munmap(at, nbytes);
}

} // namespace pq
