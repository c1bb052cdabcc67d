#include "reserve.hpp"

#include <new>
#include <sys/mman.h>
#include <sys/resource.h>

namespace pq {

void reserve(std::size_t nbytes) {
    // Without a limit there are always addresses, and to ask costs eight times as much.
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return;
    // Not malloc: a large block that it has freed changes how it keeps later ones.
    void* const at = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    munmap(at, nbytes);
}

} // namespace pq
