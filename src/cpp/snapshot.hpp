// What an array held when it was seen, to tell whether it still does.
#pragma once

#include "common.hpp"

namespace pq {

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
    // again. Adds to `compared` how many bytes were.
    bool holds(const py::handle& array, std::size_t& compared);

    const void* data() const { return data_; }

private:
    struct Axis {
        py::ssize_t dim, given, kept; // strides in bytes
    };

    bool has_form(const py::detail::PyArray_Proxy& array) const;
    bool same_content() const;
    bool same_from(std::size_t axis, const char* given, const char* kept) const;

    const char* data_;
    py::dtype dtype_;
    std::vector<Py_intptr_t> dims_, strides_;
    py::array kept_;
    std::vector<Axis> outer_; // walked one by one, the longest strides first
    std::size_t run_;         // bytes in a row below them
    std::size_t nbytes_;      // in all
    py::object constant_;     // the array while it is constant: its memory stays its own
};

} // namespace pq
