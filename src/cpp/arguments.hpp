// Names of execution arguments ("src", "wei_scale", "post_op_2") and oneDNN's numbers for them.
#pragma once

#include "attr.hpp"

namespace pq {

// "src", "src1", "wei", "bias", "dst", "src_0", "src_1", ...; throws ArgumentFault for anything
// else.
int tensor_argument(const std::string& name);

// Any execution argument: a tensor, "<tensor>_scale", "<tensor>_zero_point", "post_op_<i>", or for
// a depthwise post-op "post_op_<i>_wei" and "post_op_<i>_bias".
int argument(const std::string& name, const AttrSpec& attr);

// Every argument a primitive with these attributes reads besides its tensors. A missing one is a
// crash or a silent zero inside the library, so Prepared insists on all of them.
std::vector<std::string> attribute_arguments(const AttrSpec& attr);

} // namespace pq
