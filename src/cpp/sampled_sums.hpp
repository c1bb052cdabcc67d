// Exact sums of products at a few places of a result.
#pragma once

#include "common.hpp"

namespace pq {

// Adds `sampled_sums` to the module.
void register_sampled_sums(py::module_& m);

} // namespace pq
