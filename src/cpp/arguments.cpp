#include "arguments.hpp"

#include "errors.hpp"

#include <charconv>

namespace pq {

namespace {

[[noreturn]] void unknown(const std::string& name) {
    throw ArgumentFault(
            "ArgumentError", name, "an argument this primitive does not have",
            "src, src1, wei, bias, dst, <tensor>_scale, <tensor>_zero_point or post_op_<i>");
}

bool ends_with(const std::string& text, const std::string& tail) {
    return text.size() >= tail.size() &&
           text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

std::optional<int> number_after(const std::string& name, const std::string& prefix) {
    if (name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
    int value = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, value);
    if (error != std::errc() || end != last || value < 0) return std::nullopt;
    return value;
}

int post_op_argument(const std::string& name, const AttrSpec& attr) {
    for (std::size_t i = 0; i < attr.post_ops.size(); ++i) {
        const std::string own = "post_op_" + std::to_string(i);
        const int base = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i));
        switch (attr.post_ops[i].kind) {
        case PostOp::Kind::binary:
            if (name == own) return base | DNNL_ARG_SRC_1;
            break;
        case PostOp::Kind::prelu:
            if (name == own) return base | DNNL_ARG_WEIGHTS;
            break;
        case PostOp::Kind::depthwise:
            if (name == own + "_wei") return DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_WEIGHTS;
            if (name == own + "_bias") return DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_BIAS;
            break;
        case PostOp::Kind::sum:
        case PostOp::Kind::eltwise:
            break;
        }
    }
    unknown(name);
}

} // namespace

int tensor_argument(const std::string& name) {
    if (name == "src") return DNNL_ARG_SRC;
    if (name == "src1") return DNNL_ARG_SRC_1;
    if (name == "wei") return DNNL_ARG_WEIGHTS;
    if (name == "bias") return DNNL_ARG_BIAS;
    if (name == "dst") return DNNL_ARG_DST;
    if (const std::optional<int> index = number_after(name, "src_"))
        return DNNL_ARG_MULTIPLE_SRC + *index;
    unknown(name);
}

int argument(const std::string& name, const AttrSpec& attr) {
    const std::string scale = "_scale";
    const std::string zero_point = "_zero_point";
    if (name.compare(0, 8, "post_op_") == 0) return post_op_argument(name, attr);
    if (ends_with(name, scale)) {
        return DNNL_ARG_ATTR_SCALES | tensor_argument(name.substr(0, name.size() - scale.size()));
    }
    if (ends_with(name, zero_point)) {
        return DNNL_ARG_ATTR_ZERO_POINTS |
               tensor_argument(name.substr(0, name.size() - zero_point.size()));
    }
    return tensor_argument(name);
}

std::vector<std::string> attribute_arguments(const AttrSpec& attr) {
    std::vector<std::string> names;
    for (const RuntimeValue& scale : attr.scales)
        names.push_back(scale.arg + "_scale");
    for (const RuntimeValue& zero_point : attr.zero_points)
        names.push_back(zero_point.arg + "_zero_point");
    for (std::size_t i = 0; i < attr.post_ops.size(); ++i) {
        const PostOp& op = attr.post_ops[i];
        const std::string own = "post_op_" + std::to_string(i);
        if (op.kind == PostOp::Kind::binary || op.kind == PostOp::Kind::prelu) names.push_back(own);
        if (op.kind == PostOp::Kind::depthwise) {
            names.push_back(own + "_wei");
            if (op.bias_dtype != dnnl_data_type_undef) names.push_back(own + "_bias");
        }
    }
    return names;
}

} // namespace pq
