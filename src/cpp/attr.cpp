#include "attr.hpp"

#include "arguments.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "memory.hpp"

#include <array>

namespace pq {

namespace {

template <typename Value>
struct Named {
    const char* name;
    Value value;
};

constexpr std::array<Named<dnnl_alg_kind_t>, 21> eltwise_algs{{
        {"relu", dnnl_eltwise_relu},
        {"tanh", dnnl_eltwise_tanh},
        {"elu", dnnl_eltwise_elu},
        {"square", dnnl_eltwise_square},
        {"abs", dnnl_eltwise_abs},
        {"sqrt", dnnl_eltwise_sqrt},
        {"linear", dnnl_eltwise_linear},
        {"soft_relu", dnnl_eltwise_soft_relu},
        {"hardsigmoid", dnnl_eltwise_hardsigmoid},
        {"logistic", dnnl_eltwise_logistic},
        {"exp", dnnl_eltwise_exp},
        {"gelu_tanh", dnnl_eltwise_gelu_tanh},
        {"gelu_erf", dnnl_eltwise_gelu_erf},
        {"swish", dnnl_eltwise_swish},
        {"log", dnnl_eltwise_log},
        {"clip", dnnl_eltwise_clip},
        {"clip_v2", dnnl_eltwise_clip_v2},
        {"pow", dnnl_eltwise_pow},
        {"round", dnnl_eltwise_round},
        {"mish", dnnl_eltwise_mish},
        {"hardswish", dnnl_eltwise_hardswish},
}};

constexpr std::array<Named<dnnl_alg_kind_t>, 12> binary_algs{{
        {"add", dnnl_binary_add},
        {"mul", dnnl_binary_mul},
        {"max", dnnl_binary_max},
        {"min", dnnl_binary_min},
        {"div", dnnl_binary_div},
        {"sub", dnnl_binary_sub},
        {"ge", dnnl_binary_ge},
        {"gt", dnnl_binary_gt},
        {"le", dnnl_binary_le},
        {"lt", dnnl_binary_lt},
        {"eq", dnnl_binary_eq},
        {"ne", dnnl_binary_ne},
}};

constexpr std::array<Named<dnnl_fpmath_mode_t>, 5> fpmath_modes{{
        {"strict", dnnl_fpmath_mode_strict},
        {"bf16", dnnl_fpmath_mode_bf16},
        {"f16", dnnl_fpmath_mode_f16},
        {"any", dnnl_fpmath_mode_any},
        {"tf32", dnnl_fpmath_mode_tf32},
}};

constexpr std::array<Named<dnnl_accumulation_mode_t>, 6> accumulation_modes{{
        {"strict", dnnl_accumulation_mode_strict},
        {"relaxed", dnnl_accumulation_mode_relaxed},
        {"any", dnnl_accumulation_mode_any},
        {"s32", dnnl_accumulation_mode_s32},
        {"f32", dnnl_accumulation_mode_f32},
        {"f16", dnnl_accumulation_mode_f16},
}};

template <typename Value, std::size_t N>
Value value_of(const std::array<Named<Value>, N>& table, const char* argument,
               const std::string& name) {
    std::string known;
    for (const Named<Value>& row : table) {
        if (name == row.name) return row.value;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    throw ArgumentFault("ArgumentError", argument, "'" + name + "'", "one of " + known);
}

template <typename Value, std::size_t N>
const char* name_of(const std::array<Named<Value>, N>& table, Value value) {
    for (const Named<Value>& row : table)
        if (row.value == value) return row.name;
    return "unknown";
}

std::vector<RuntimeValue> runtime_values(const py::handle& list) {
    std::vector<RuntimeValue> values;
    for (const py::handle item : list) {
        const auto row = py::cast<py::tuple>(item);
        values.push_back({row[0].cast<std::string>(), row[1].cast<int>(),
                          dtype_from_name(row[2].cast<std::string>()), row[3].cast<Dims>()});
    }
    return values;
}

PostOp post_op_from_python(const py::tuple& row) {
    PostOp op;
    const auto kind = row[0].cast<std::string>();
    if (kind == "sum") {
        op.kind = PostOp::Kind::sum;
        op.scale = row[1].cast<float>();
        op.zero_point = row[2].cast<std::int32_t>();
        op.dtype = dtype_from_name(row[3].cast<std::string>());
    } else if (kind == "eltwise") {
        op.kind = PostOp::Kind::eltwise;
        op.alg = eltwise_alg(row[1].cast<std::string>());
        op.alpha = row[2].cast<float>();
        op.beta = row[3].cast<float>();
    } else if (kind == "binary") {
        op.kind = PostOp::Kind::binary;
        op.alg = binary_alg(row[1].cast<std::string>());
        op.src1 = tensor_from_python(row[2]);
    } else if (kind == "prelu") {
        op.kind = PostOp::Kind::prelu;
        op.mask = row[1].cast<int>();
    } else if (kind == "depthwise") {
        op.kind = PostOp::Kind::depthwise;
        op.wei_dtype = dtype_from_name(row[1].cast<std::string>());
        op.bias_dtype = dtype_from_name(row[2].cast<std::string>());
        op.dst_dtype = dtype_from_name(row[3].cast<std::string>());
        op.kernel = row[4].cast<dnnl_dim_t>();
        op.stride = row[5].cast<dnnl_dim_t>();
        op.padding = row[6].cast<dnnl_dim_t>();
    } else {
        throw ArgumentFault("ArgumentError", "post_ops", "'" + kind + "'",
                            "sum, eltwise, binary, prelu or depthwise");
    }
    return op;
}

void append(dnnl_post_ops_t ops, const PostOp& op) {
    switch (op.kind) {
    case PostOp::Kind::sum:
        PQ_CALL(post_ops_append_sum, ops, op.scale, op.zero_point, op.dtype);
        return;
    case PostOp::Kind::eltwise:
        PQ_CALL(post_ops_append_eltwise, ops, op.alg, op.alpha, op.beta);
        return;
    case PostOp::Kind::prelu:
        PQ_CALL(post_ops_append_prelu, ops, op.mask);
        return;
    case PostOp::Kind::depthwise:
        PQ_CALL(post_ops_append_dw, ops, op.wei_dtype, op.bias_dtype, op.dst_dtype, op.kernel,
                op.stride, op.padding);
        return;
    case PostOp::Kind::binary: {
        const Layout src1(op.src1);
        PQ_CALL(post_ops_append_binary, ops, op.alg, src1.desc());
        return;
    }
    }
}

py::tuple read_post_op(const_dnnl_post_ops_t ops, int index) {
    switch (lib().post_ops_get_kind(ops, index)) {
    case dnnl_sum: {
        float scale = 0;
        std::int32_t zero_point = 0;
        dnnl_data_type_t dtype = dnnl_data_type_undef;
        PQ_CALL(post_ops_get_params_sum, ops, index, &scale, &zero_point, &dtype);
        return py::make_tuple("sum", scale, zero_point, dtype_name(dtype));
    }
    case dnnl_eltwise: {
        dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
        float alpha = 0;
        float beta = 0;
        PQ_CALL(post_ops_get_params_eltwise, ops, index, &alg, &alpha, &beta);
        return py::make_tuple("eltwise", name_of(eltwise_algs, alg), alpha, beta);
    }
    case dnnl_binary: {
        dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
        const_dnnl_memory_desc_t src1 = nullptr;
        PQ_CALL(post_ops_get_params_binary, ops, index, &alg, &src1);
        const Layout layout(src1);
        return py::make_tuple("binary", name_of(binary_algs, alg),
                              py::tuple(py::cast(layout.dims())), dtype_name(layout.dtype()));
    }
    case dnnl_prelu: {
        int mask = 0;
        PQ_CALL(post_ops_get_params_prelu, ops, index, &mask);
        return py::make_tuple("prelu", mask);
    }
    case dnnl_convolution: {
        dnnl_data_type_t wei = dnnl_data_type_undef;
        dnnl_data_type_t bias = dnnl_data_type_undef;
        dnnl_data_type_t dst = dnnl_data_type_undef;
        dnnl_dim_t kernel = 0;
        dnnl_dim_t stride = 0;
        dnnl_dim_t padding = 0;
        PQ_CALL(post_ops_get_params_dw, ops, index, &wei, &bias, &dst, &kernel, &stride, &padding);
        return py::make_tuple("depthwise", dtype_name(wei), dtype_name(bias), dtype_name(dst),
                              kernel, stride, padding);
    }
    default:
        return py::make_tuple("unknown");
    }
}

} // namespace

dnnl_alg_kind_t eltwise_alg(const std::string& name) {
    return value_of(eltwise_algs, "alg", name);
}

dnnl_alg_kind_t binary_alg(const std::string& name) {
    return value_of(binary_algs, "alg", name);
}

AttrSpec attr_from_python(const py::dict& spec) {
    AttrSpec attr;
    attr.scales = runtime_values(spec["scales"]);
    attr.zero_points = runtime_values(spec["zero_points"]);
    for (const py::handle row : spec["post_ops"])
        attr.post_ops.push_back(post_op_from_python(py::cast<py::tuple>(row)));
    const auto fpmath = py::cast<py::tuple>(spec["fpmath"]);
    attr.fpmath = value_of(fpmath_modes, "fpmath", fpmath[0].cast<std::string>());
    attr.fpmath_apply_to_int = fpmath[1].cast<bool>();
    attr.accumulation = value_of(accumulation_modes, "accumulation",
                                 py::cast<std::string>(spec["accumulation"]));
    attr.deterministic = py::cast<bool>(spec["deterministic"]);
    return attr;
}

Attribute make_attr(const AttrSpec& spec) {
    dnnl_primitive_attr_t created = nullptr;
    PQ_CALL(primitive_attr_create, &created);
    Attribute attr(created);
    PQ_CALL(primitive_attr_set_scratchpad_mode, attr.get(), dnnl_scratchpad_mode_user);

    // The narrow setters where they suffice: some kernels look at the wide form differently.
    for (const RuntimeValue& scale : spec.scales) {
        const int arg = tensor_argument(scale.arg);
        if (scale.groups.empty() && scale.dtype == dnnl_f32) {
            PQ_CALL(primitive_attr_set_scales_mask, attr.get(), arg, scale.mask);
        } else {
            PQ_CALL(primitive_attr_set_scales, attr.get(), arg, scale.mask,
                    static_cast<int>(scale.groups.size()), scale.groups.data(), scale.dtype);
        }
    }
    for (const RuntimeValue& zero_point : spec.zero_points) {
        const int arg = tensor_argument(zero_point.arg);
        if (zero_point.groups.empty() && zero_point.dtype == dnnl_s32) {
            PQ_CALL(primitive_attr_set_zero_points_mask, attr.get(), arg, zero_point.mask);
        } else {
            PQ_CALL(primitive_attr_set_zero_points, attr.get(), arg, zero_point.mask,
                    static_cast<int>(zero_point.groups.size()), zero_point.groups.data(),
                    zero_point.dtype);
        }
    }
    if (!spec.post_ops.empty()) {
        dnnl_post_ops_t ops_created = nullptr;
        PQ_CALL(post_ops_create, &ops_created);
        const PostOps ops(ops_created);
        for (const PostOp& op : spec.post_ops)
            append(ops.get(), op);
        PQ_CALL(primitive_attr_set_post_ops, attr.get(), ops.get());
    }
    if (spec.fpmath != dnnl_fpmath_mode_strict || spec.fpmath_apply_to_int) {
        PQ_CALL(primitive_attr_set_fpmath_mode_v2, attr.get(), spec.fpmath,
                spec.fpmath_apply_to_int ? 1 : 0);
    }
    if (spec.accumulation != dnnl_accumulation_mode_strict) {
        PQ_CALL(primitive_attr_set_accumulation_mode, attr.get(), spec.accumulation);
    }
    if (spec.deterministic) PQ_CALL(primitive_attr_set_deterministic, attr.get(), 1);
    return attr;
}

py::dict attr_readback(const_dnnl_primitive_attr_t attr) {
    const_dnnl_post_ops_t ops = nullptr;
    PQ_CALL(primitive_attr_get_post_ops, attr, &ops);
    py::list post_ops;
    for (int i = 0; i < lib().post_ops_len(ops); ++i)
        post_ops.append(read_post_op(ops, i));
    dnnl_fpmath_mode_t fpmath = dnnl_fpmath_mode_strict;
    int apply_to_int = 0;
    PQ_CALL(primitive_attr_get_fpmath_mode_v2, attr, &fpmath, &apply_to_int);
    dnnl_accumulation_mode_t accumulation = dnnl_accumulation_mode_strict;
    PQ_CALL(primitive_attr_get_accumulation_mode, attr, &accumulation);
    int deterministic = 0;
    PQ_CALL(primitive_attr_get_deterministic, attr, &deterministic);
    dnnl_scratchpad_mode_t scratchpad = dnnl_scratchpad_mode_library;
    PQ_CALL(primitive_attr_get_scratchpad_mode, attr, &scratchpad);

    py::dict result;
    result["post_ops"] = py::tuple(post_ops);
    result["fpmath"] = py::make_tuple(name_of(fpmath_modes, fpmath), apply_to_int != 0);
    result["accumulation"] = name_of(accumulation_modes, accumulation);
    result["deterministic"] = deterministic != 0;
    result["scratchpad"] = scratchpad == dnnl_scratchpad_mode_user ? "user" : "library";
    return result;
}

} // namespace pq
