// What an array held when it was seen, to tell whether it still does.
#pragma once

#include "common.hpp"

#include "watch.hpp"

namespace pq {

// Bytes that were to be compared: those that were, and those that the kernel answered for.
struct Looks {
    std::size_t compared = 0, watched = 0;
};

// Whether nothing can write an array's memory without asking for it: the array and all arrays that
// it is a view of are read-only, and the last of them owns its memory or lies over bytes.
bool is_constant(const py::detail::PyArray_Proxy& array);

// The memory that an array had: place, dims, strides and data type, and a copy of the content.
// Reads NumPy's struct; needs the GIL.
class Snapshot {
public:
    // `kept` is a copy of `given`, in any layout.
    Snapshot(const py::array& given, py::array kept);

    // Whether that array has the same form in the same place and the same content, byte by byte.
    // The content of an array that is constant, and was when it was last compared, is not compared
    // again; nor are pages that were the same a few times, and that the kernel saw no write to
    // since.
    bool holds(const py::handle& array, Looks& looks);

    const void* data() const { return data_; }

private:
    struct Axis {
        py::ssize_t dim, given, kept; // strides in bytes
    };

    bool has_form(const py::detail::PyArray_Proxy& array) const;
    // Whether nobody wrote to the pages that are watched.
    bool is_unwritten();
    // A mark to watch them from, before they are compared; 0: not yet, or never.
    std::uint64_t next_mark();
    bool same_content() const;
    bool same_between(const char* begin, const char* end) const;
    bool same_from(std::size_t axis, const char* given, const char* kept) const;

    const char* data_;
    py::dtype dtype_;
    std::vector<Py_intptr_t> dims_, strides_;
    py::array kept_;
    std::vector<Axis> outer_; // walked one by one, the longest strides first
    std::size_t run_;         // bytes in a row below them
    std::size_t nbytes_;      // in all
    py::object constant_;     // the array while it is constant: its memory stays its own

    std::shared_ptr<Watch> watch_;
    std::uint64_t mark_ = 0;       // from when on it watches for us; 0: not
    unsigned same_ = 0, wait_ = 4; // comparisons in a row without a write, and before watching
};

} // namespace pq
