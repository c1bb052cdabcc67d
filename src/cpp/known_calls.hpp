// Operators by the very calls that they were made for: the functional form's way back to them.
#pragma once

#include "snapshot.hpp"

#include <array>
#include <memory>
#include <unordered_map>

namespace pq {

// The options of a call: names and values in their order, borrowed.
class Options {
public:
    struct Option {
        PyObject *name, *value;
    };

    // False if there is no room for it: no operator has so many.
    bool add(PyObject* name, PyObject* value);
    bool add_all(PyObject* dict);

    const Option* begin() const { return options_.data(); }
    const Option* end() const { return begin() + size_; }
    std::size_t size() const { return size_; }

private:
    std::array<Option, 32> options_; // those from size_ on hold nothing
    std::size_t size_ = 0;
};

// A call is a kind of operator, weights, a bias or None, and options. Kind and options are the same
// if they are the same objects, so whoever remembers a call answers for its options being
// immutable; weights and bias, if they lie in the same place and hold the same bytes. Needs the
// GIL.
class KnownCalls {
public:
    // The operator of that call, or null: a call not known, or arrays that were written.
    PyObject* find(PyObject* kind, PyObject* wei, PyObject* bias, const Options& options);

    // Remembers a call, in place of what was known of it. `kept_wei` and `kept_bias` are copies.
    void remember(const py::object& kind, const py::array& wei, const py::object& bias,
                  const py::dict& options, py::object op, const py::array& kept_wei,
                  const py::object& kept_bias);

    // Remembers the operator of a known call for the same call with options that are equal; returns
    // the operator, or None if the call is not known.
    py::object find_as(const py::object& kind, const py::object& wei, const py::object& bias,
                       const py::dict& known, const py::dict& options);

    // The operators, those used longest ago first.
    py::list by_age() const;

    void forget(); // the calls
    void clear();  // the counts, too
    std::size_t size() const { return calls_.size(); }
    std::size_t hits() const { return hits_; }
    std::size_t compared() const { return compared_; } // bytes of weights and biases

private:
    using Snapshots = std::pair<std::shared_ptr<Snapshot>, std::shared_ptr<Snapshot>>;

    struct Call {
        std::vector<py::object> objects; // kind, then names and values of the options
        Snapshots held;                  // weights; bias or null
        py::object op;
        std::size_t used;
    };

    using Calls = std::unordered_multimap<std::size_t, Call>;

    Calls::iterator find_objects(std::size_t key, PyObject* kind, const void* wei, const void* bias,
                                 const Options& options);
    void insert(const py::object& kind, const py::dict& options, Snapshots held, py::object op);

    Calls calls_;
    std::size_t hits_ = 0, clock_ = 0, compared_ = 0;
};

} // namespace pq
