#include "written_pages.hpp"

#include <cstdint>

#if defined(__linux__) && defined(__x86_64__)
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <pthread.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#endif

namespace pq {

#if defined(__linux__) && defined(__x86_64__)

namespace {

// The kernel's interface, here because headers older than Linux 6.7 lack it (conda's do).
namespace kernel {

constexpr long userfaultfd = 323, getrandom = 318; // numbers of system calls
constexpr int user_mode_only = 1;                  // what needs no privilege

struct Api {
    std::uint64_t version, features, ioctls;
};
constexpr std::uint64_t api_version = 0xAA;
constexpr std::uint64_t wp_unpopulated = 1U << 13U, wp_async = 1U << 15U;

struct Range {
    std::uint64_t start, bytes;
};
struct Register {
    Range range;
    std::uint64_t mode, ioctls;
};
constexpr std::uint64_t mode_wp = 2;
struct Protect {
    Range range;
    std::uint64_t mode;
};

struct Scan {
    std::uint64_t size, flags, start, end, walk_end, found, room, most;
    std::uint64_t inverted, all_of, any_of, returned;
};
struct Found {
    std::uint64_t start, end, categories;
};
constexpr std::uint64_t scan_protects = 1, scan_checks_async = 2;
constexpr std::uint64_t page_is_written = 2, page_is_file = 4;

constexpr unsigned long api = _IOWR(0xAA, 0x3F, Api), add = _IOWR(0xAA, 0x00, Register),
                        remove = _IOR(0xAA, 0x01, Range), protect = _IOWR(0xAA, 0x06, Protect),
                        scan = _IOWR('f', 16, Scan);

} // namespace kernel

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

std::uint64_t number(const char* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

kernel::Range range(const Pages& pages) {
    return {number(pages.begin), pages.bytes()};
}

// So that there is a page for each mark.
void touch(const Pages& pages) {
    for (const char* at = pages.begin; at < pages.end; at += page_bytes())
        static_cast<void>(*static_cast<const volatile char*>(at));
}

// Whether the kernel's word on this process has a line with that name and a number but 0, or cannot
// be had.
bool has_status(const char* name) {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind(name, 0) == 0) return line.find_first_of("123456789") != line.npos;
    return true;
}

// Whether a device may write to memory of this process, past its page tables. Asynchronous reads
// (io_uring, aio) count as one.
bool has_devices() {
    std::ifstream maps("/proc/self/maps");
    if (!maps) return true;
    std::string line;
    while (std::getline(maps, line)) {
        std::istringstream words(line);
        std::string skipped, path;
        words >> skipped >> skipped >> skipped >> skipped >> skipped >> path;
        const auto begins = [&](const char* with) { return path.rfind(with, 0) == 0; };
        if (begins("anon_inode:") || begins("socket:") || begins("/[aio]")) return true;
        if (begins("/dev/") && !begins("/dev/shm/") && !begins("/dev/zero")) return true;
    }
    return has_status("VmPin:");
}

// What the process asks the kernel through.
class Kernel {
public:
    static Kernel& only() {
        // Leaked on purpose: marks are taken away until the very end.
        static Kernel& made = *new Kernel;
        return made;
    }

    std::string why_not;

    // Without the look for devices.
    bool mark(const Pages& pages) const {
        if (faults_ < 0) return false;
        kernel::Register added{range(pages), kernel::mode_wp, 0};
        if (ioctl(faults_, kernel::add, &added) != 0) return false;
        touch(pages);
        // Linux before 6.13 moves marks along with memory (mremap); writes do not take those away.
        kernel::Protect none{range(pages), 0};
        if (ioctl(faults_, kernel::protect, &none) != 0) return false;
        // What others map, too, they may write without a trace in our tables.
        if (!is_free_of(kernel::page_is_file, pages)) return false;
        kernel::Scan all = about(pages);
        all.flags = kernel::scan_protects | kernel::scan_checks_async;
        all.all_of = all.returned = kernel::page_is_written;
        return ioctl(tables_, kernel::scan, &all) == 0 && unwritten(pages);
    }

    bool unwritten(const Pages& pages) const {
        return faults_ >= 0 && is_free_of(kernel::page_is_written, pages);
    }

    void release(const Pages& pages) const {
        kernel::Range removed = range(pages);
        if (faults_ >= 0) ioctl(faults_, kernel::remove, &removed);
    }

private:
    Kernel() {
        why_not = open_files();
        if (why_not.empty() && !works()) why_not = "Linux does not tell what was written";
        if (!why_not.empty()) close_files();
        pthread_atfork(nullptr, nullptr, [] { only().leave(); });
    }

    static kernel::Scan about(const Pages& pages) {
        kernel::Scan scan{};
        scan.size = sizeof scan;
        scan.start = number(pages.begin);
        scan.end = number(pages.end);
        return scan;
    }

    bool is_free_of(std::uint64_t category, const Pages& pages) const {
        kernel::Found found{};
        kernel::Scan scan = about(pages);
        scan.flags = kernel::scan_checks_async;
        scan.all_of = scan.returned = category;
        scan.found = reinterpret_cast<std::uintptr_t>(&found);
        scan.room = scan.most = 1;
        return ioctl(tables_, kernel::scan, &scan) == 0 && scan.walk_end == scan.end;
    }

    std::string open_files() {
        tables_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (tables_ < 0) return std::string("/proc/self/pagemap: ") + std::strerror(errno);
        // Filters that forbid a call may end the process that makes it.
        if (has_status("Seccomp:")) return "a seccomp filter may forbid userfaultfd";
        faults_ = static_cast<int>(
                syscall(kernel::userfaultfd, O_CLOEXEC | O_NONBLOCK | kernel::user_mode_only));
        if (faults_ < 0) return std::string("userfaultfd: ") + std::strerror(errno);
        kernel::Api api{kernel::api_version, kernel::wp_async | kernel::wp_unpopulated, 0};
        if (ioctl(faults_, kernel::api, &api) != 0)
            return "userfaultfd has no asynchronous mode before Linux 6.7";
        return "";
    }

    void close_files() {
        for (int* file : {&faults_, &tables_})
            if (*file >= 0) close(std::exchange(*file, -1));
    }

    // In a child: the files are its parent's, and so is the memory that they are about.
    void leave() {
        close_files();
        why_not = "this process is a fork of one that watched its memory";
    }

    // Writes to pages in three ways that have to be seen.
    bool works() const {
        constexpr std::size_t count = 4;
        void* const mapped = mmap(nullptr, count * page_bytes(), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return false;
        char* const begin = static_cast<char*>(mapped);
        const Pages pages{begin, begin + count * page_bytes()};
        bool works = mark(pages);
        *static_cast<volatile char*>(begin + page_bytes()) = 1;
        works = works && !unwritten(pages) && mark(pages);
        works = works && syscall(kernel::getrandom, begin, 8, 0) == 8;
        works = works && !unwritten(pages) && mark(pages);
        works = works && madvise(begin, page_bytes(), MADV_DONTNEED) == 0 && !unwritten(pages);
        munmap(mapped, pages.bytes());
        return works;
    }

    int faults_ = -1, tables_ = -1;
};

} // namespace

Pages Pages::inside(const char* begin, const char* end) {
    const std::uint64_t page = page_bytes();
    const std::uint64_t first = (number(begin) + page - 1) / page * page;
    const std::uint64_t last = number(end) / page * page;
    if (first >= last) return {};
    return {begin + (first - number(begin)), end - (number(end) - last)};
}

namespace written_pages {

std::string why_not() {
    if (!Kernel::only().why_not.empty()) return Kernel::only().why_not;
    return has_devices() ? "a device or an asynchronous read may write to this process" : "";
}

bool mark(const Pages& pages) {
    return why_not().empty() && Kernel::only().mark(pages);
}

bool unwritten(const Pages& pages) {
    return Kernel::only().unwritten(pages);
}

void release(const Pages& pages) {
    Kernel::only().release(pages);
}

} // namespace written_pages

#else

Pages Pages::inside(const char* /*begin*/, const char* /*end*/) {
    return {};
}

namespace written_pages {

std::string why_not() {
    return "only Linux on x86-64 is asked";
}

bool mark(const Pages& /*pages*/) {
    return false;
}

bool unwritten(const Pages& /*pages*/) {
    return false;
}

void release(const Pages& /*pages*/) {}

} // namespace written_pages

#endif

} // namespace pq
