#include "watch.hpp"

#include <algorithm>
#include <vector>

namespace pq {

namespace {

// Fewer bytes are compared in the time that asking the kernel takes.
constexpr std::size_t least_bytes = std::size_t{48} << 10U;

std::vector<Watch*>& all() {
    // Leaked on purpose: watches of the interpreter's last objects end after static destruction.
    static auto& watches = *new std::vector<Watch*>;
    return watches;
}

bool watching = true;
std::uint64_t marks = 0; // made so far

} // namespace

std::shared_ptr<Watch> Watch::of(const char* begin, const char* end) {
    const Pages pages = Pages::inside(begin, end);
    if (pages.bytes() < least_bytes) return nullptr;
    for (Watch* const watch : all())
        if (watch->pages_.begin == pages.begin && watch->pages_.end == pages.end)
            if (auto shared = watch->weak_from_this().lock()) return shared;
    return std::make_shared<Watch>(pages);
}

Watch::Watch(const Pages& pages) : pages_(pages) {
    all().push_back(this);
}

Watch::~Watch() {
    all().erase(std::find(all().begin(), all().end(), this));
    if (mark_ != 0) written_pages::release(pages_);
}

std::uint64_t Watch::mark() {
    if (!watching) return 0;
    if (unwritten_since(mark_)) return mark_;
    const bool seen = written_pages::mark(pages_);
    ++marks;
    for (Watch* const watch : all())
        if (watch->pages_.overlap(pages_)) watch->mark_ = marks;
    return seen ? marks : 0;
}

bool Watch::unwritten_since(std::uint64_t mark) const {
    return watching && mark != 0 && mark == mark_ && written_pages::unwritten(pages_);
}

void set_watching(bool on) {
    watching = on;
}

std::string why_not_watching() {
    return watching ? written_pages::why_not() : "switched off";
}

} // namespace pq
