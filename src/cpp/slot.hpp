// One argument that comes with each call: what arrays must look like, and how the primitive, which
// may want another layout, gets to see them.
#pragma once

#include "array_layout.hpp"
#include "candidate.hpp"
#include "reorder.hpp"

namespace pq {

// Layouts that arrays of a call have, by argument, where the primitive takes another.
using Arrays = std::map<std::string, TensorSpec>;

struct Slot : ArrayLayout {
    // `is_read`: the primitive reads it before it writes it.
    Slot(const Candidate& candidate, const std::string& slot_name, const Arrays& arrays,
         bool is_read);

    bool copied() const { return in || out; }

    int argument = 0;
    Layout inner; // what the primitive takes: arrays lie the same, have other dims over the same
                  // bytes, or are copied

    // Copies between arrays, `outside`, and the elements of inner that they have, `corner`; padding
    // stays zero. As the copies see them, which keep every bit.
    Layout outside, corner;
    std::shared_ptr<const Reorder> in, out;
};

} // namespace pq
