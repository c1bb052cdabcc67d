// Which pages were written since they were marked.
#pragma once

#include <cstddef>
#include <string>

namespace pq {

// Whole pages of memory.
struct Pages {
    const char *begin = nullptr, *end = nullptr;

    // Those that lie in [begin, end) with every byte.
    static Pages inside(const char* begin, const char* end);

    bool overlap(const Pages& other) const { return begin < other.end && other.begin < end; }
    std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

// Linux can tell, from 6.7 on and where no seccomp filter may forbid userfaultfd: of memory that
// only this process maps, and of all that is written through page tables, by its own code, by the
// kernel for it, or by a debugger. A device writes past them, so nothing is marked in a process
// that has mapped one or has pinned memory. What nobody sees is a write by a device that is under
// way while pages are being marked: a direct read (O_DIRECT) in another thread.
namespace written_pages {

// Why pages are not marked; empty if they are. The kernel is tried out when this is first asked.
std::string why_not();

// Marks pages of memory that is mapped. False if writes to them would not be seen.
bool mark(const Pages& pages);

// Whether all of them are marked and were not written. False of memory that was mapped since.
bool unwritten(const Pages& pages);

// Takes the marks away. The memory may be gone.
void release(const Pages& pages);

} // namespace written_pages

} // namespace pq
