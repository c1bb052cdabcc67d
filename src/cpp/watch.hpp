// Memory that need not be looked at again, because nobody wrote to it.
#pragma once

#include "written_pages.hpp"

#include <cstdint>
#include <memory>

namespace pq {

// Watches some pages. All watches of the process know of each other, since a mark that one of them
// makes tells the others nothing about what was written before. Needs the GIL.
class Watch : public std::enable_shared_from_this<Watch> {
public:
    // Of the whole pages between, shared with all who watch just these; null if watching would
    // cost more than comparing.
    static std::shared_ptr<Watch> of(const char* begin, const char* end);

    explicit Watch(const Pages& pages);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    const Pages& pages() const { return pages_; }

    // A number for this moment, before the pages are read; 0 if writes would not be seen.
    std::uint64_t mark();

    // Whether nothing was written to the pages since that moment.
    bool unwritten_since(std::uint64_t mark) const;

private:
    Pages pages_;
    std::uint64_t mark_ = 0; // the last one
};

// Whether pages are watched at all, from now on.
void set_watching(bool on);

// Why none are; empty if they are.
std::string why_not_watching();

} // namespace pq
