// One argument that comes with each call: what arrays must look like, and how the primitive, which
// may want another layout, gets to see them.
#pragma once

#include "candidate.hpp"
#include "reorder.hpp"

namespace pq {

// Layouts that arrays of a call have, by argument, where the primitive takes another.
using Arrays = std::map<std::string, TensorSpec>;

struct Slot {
    // `is_read`: the primitive reads it before it writes it.
    Slot(const Candidate& candidate, const std::string& slot_name, const Arrays& arrays,
         bool is_read);

    // Whether an object is an array exactly as wanted, to be written or only read. Reads NumPy's
    // struct and calls nothing; what it turns down may still be usable.
    bool fits(PyObject* object, bool is_written) const;

    // The same of an array of float32 whose codes lie as the argument does.
    bool fits_codes_of(PyObject* object) const;

    // The memory of an array that is checked in full; ArgumentFault says what is wrong with it.
    void* checked_data(const py::handle& object) const;

    bool copied() const { return in || out; }
    bool is_row_major() const;

    std::string name;
    int argument = 0;
    Layout inner;  // what the primitive takes
    Layout layout; // of arrays: the same, other dims over the same bytes, or what is copied
    bool output = false;
    py::dtype dtype;
    std::vector<py::ssize_t> strides_bytes; // of dimensions longer than 1; others may be anything
    std::size_t extent = 0;                 // bytes from the first to one past the last element
    bool has_gaps = false;                  // in which other arrays may have their elements

    // Copies between arrays, `outside`, and the elements of inner that they have, `corner`; padding
    // stays zero. As the copies see them, which keep every bit.
    Layout outside, corner;
    std::shared_ptr<const Reorder> in, out;

private:
    // An item of the array is `times` as many bytes as one of the argument.
    bool fits_as(PyObject* object, const py::dtype& wanted, py::ssize_t times, int flags) const;
};

} // namespace pq
