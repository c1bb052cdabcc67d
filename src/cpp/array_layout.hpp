// What an array of a call must look like: dims, data type, and where its elements lie.
#pragma once

#include "memory.hpp"

namespace pq {

struct ArrayLayout {
    // `is_output`: it is written, and arrays must be writeable.
    ArrayLayout(std::string argument_name, const Layout& of, bool is_output);

    // Whether an object is an array exactly as wanted, to be written or only read. Reads NumPy's
    // struct and calls nothing; what it turns down may still be usable.
    bool fits(PyObject* object, bool is_written) const;

    // The same of an array of float32, or of s8, whose codes lie as the argument does.
    bool fits_codes_of(PyObject* object, bool is_s8) const;

    // The memory of an array that is checked in full; ArgumentFault says what is wrong with it.
    void* checked_data(const py::handle& object) const;

    // A new array, uninitialised, over memory of the pool.
    py::object empty() const;

    bool is_row_major() const;

    std::string name;
    Layout layout;
    bool output;
    py::dtype dtype;
    std::vector<py::ssize_t> strides_bytes; // of dimensions longer than 1; others may be anything
    std::size_t extent = 0;                 // bytes from the first to one past the last element
    bool has_gaps = false;                  // in which other arrays may have their elements

private:
    // An item of the array is `times` as many bytes as one of the argument.
    bool fits_as(PyObject* object, const py::dtype& wanted, py::ssize_t times, int flags) const;
};

// Whether elements lie side by side, in any order.
bool has_no_gaps(const Layout& layout);

} // namespace pq
