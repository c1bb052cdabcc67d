#include "problem.hpp"

#include "errors.hpp"
#include "runtime.hpp"

#include <utility>

namespace pq {

namespace {

const Layout& tensor(const Problem& problem, const char* name) {
    const auto found = problem.tensors.find(name);
    if (found == problem.tensors.end()) {
        throw ArgumentFault("ArgumentError", name, "nothing", "a tensor of this problem");
    }
    return found->second;
}

const_dnnl_memory_desc_t optional_desc(const Problem& problem, const char* name) {
    const auto found = problem.tensors.find(name);
    return found == problem.tensors.end() ? nullptr : found->second.desc();
}

// oneDNN counts the zeros between taps, we count the step.
Dims dilates(const Dims& dilation) {
    Dims zeros = dilation;
    for (dnnl_dim_t& step : zeros)
        step -= 1;
    return zeros;
}

dnnl_alg_kind_t named_alg(const std::string& kind, const std::string& name) {
    if (kind == "eltwise") return eltwise_alg(name);
    if (kind == "binary") return binary_alg(name);
    if (name == "max") return dnnl_pooling_max;
    if (name == "avg_include_padding") return dnnl_pooling_avg_include_padding;
    if (name == "avg_exclude_padding") return dnnl_pooling_avg_exclude_padding;
    if (name == "softmax_accurate") return dnnl_softmax_accurate;
    if (name == "softmax_log") return dnnl_softmax_log;
    if (name == "linear") return dnnl_resampling_linear;
    if (name == "nearest") return dnnl_resampling_nearest;
    throw ArgumentFault("ArgumentError", "alg", "'" + name + "'", "an algorithm of " + kind);
}

void check_spatial(const Problem& problem,
                   std::initializer_list<std::pair<const char*, const Dims*>> values) {
    const std::size_t spatial = tensor(problem, "src").dims().size() - 2;
    for (const auto& [name, dims] : values) {
        if (dims->size() != spatial) {
            throw ArgumentFault("ShapeError", name, dims_text(*dims),
                                std::to_string(spatial) + " values, one per "
                                                          "spatial dimension");
        }
    }
}

// Convolution and deconvolution are described alike.
using Windowed = decltype(Library::convolution_forward_primitive_desc_create);

dnnl_primitive_desc_t windowed(const Problem& p, dnnl_primitive_attr_t attr, Windowed create,
                               dnnl_alg_kind_t alg, const char* call) {
    check_spatial(p, {{"strides", &p.strides},
                      {"dilation", &p.dilation},
                      {"padding_lo", &p.padding_lo},
                      {"padding_hi", &p.padding_hi}});
    const Dims zeros = dilates(p.dilation);
    dnnl_primitive_desc_t created = nullptr;
    check(create(&created, engine(), dnnl_forward_inference, alg, tensor(p, "src").desc(),
                 tensor(p, "wei").desc(), optional_desc(p, "bias"), tensor(p, "dst").desc(),
                 p.strides.data(), zeros.data(), p.padding_lo.data(), p.padding_hi.data(), attr),
          call);
    return created;
}

dnnl_primitive_desc_t convolution(const Problem& p, dnnl_primitive_attr_t attr) {
    return windowed(p, attr, lib().convolution_forward_primitive_desc_create,
                    dnnl_convolution_direct, "dnnl_convolution_forward_primitive_desc_create");
}

dnnl_primitive_desc_t deconvolution(const Problem& p, dnnl_primitive_attr_t attr) {
    return windowed(p, attr, lib().deconvolution_forward_primitive_desc_create,
                    dnnl_deconvolution_direct, "dnnl_deconvolution_forward_primitive_desc_create");
}

dnnl_primitive_desc_t inner_product(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(inner_product_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            tensor(p, "src").desc(), tensor(p, "wei").desc(), optional_desc(p, "bias"),
            tensor(p, "dst").desc(), attr);
    return created;
}

dnnl_primitive_desc_t matmul(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(matmul_primitive_desc_create, &created, engine(), tensor(p, "src").desc(),
            tensor(p, "wei").desc(), optional_desc(p, "bias"), tensor(p, "dst").desc(), attr);
    return created;
}

dnnl_primitive_desc_t eltwise(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(eltwise_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            p.alg, tensor(p, "src").desc(), tensor(p, "dst").desc(), p.alpha, p.beta, attr);
    return created;
}

dnnl_primitive_desc_t binary(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(binary_primitive_desc_create, &created, engine(), p.alg, tensor(p, "src").desc(),
            tensor(p, "src1").desc(), tensor(p, "dst").desc(), attr);
    return created;
}

dnnl_primitive_desc_t sum(const Problem& p, dnnl_primitive_attr_t attr) {
    std::vector<const_dnnl_memory_desc_t> srcs;
    for (std::size_t i = 0; i < p.sum_scales.size(); ++i)
        srcs.push_back(tensor(p, ("src_" + std::to_string(i)).c_str()).desc());
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(sum_primitive_desc_create, &created, engine(), tensor(p, "dst").desc(),
            static_cast<int>(srcs.size()), p.sum_scales.data(), srcs.data(), attr);
    return created;
}

dnnl_primitive_desc_t softmax(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(softmax_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            p.alg, tensor(p, "src").desc(), tensor(p, "dst").desc(), p.axis, attr);
    return created;
}

dnnl_primitive_desc_t pooling(const Problem& p, dnnl_primitive_attr_t attr) {
    check_spatial(p, {{"kernel", &p.kernel},
                      {"strides", &p.strides},
                      {"dilation", &p.dilation},
                      {"padding_lo", &p.padding_lo},
                      {"padding_hi", &p.padding_hi}});
    const Dims zeros = dilates(p.dilation);
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(pooling_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            p.alg, tensor(p, "src").desc(), tensor(p, "dst").desc(), p.strides.data(),
            p.kernel.data(), zeros.data(), p.padding_lo.data(), p.padding_hi.data(), attr);
    return created;
}

dnnl_primitive_desc_t resampling(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    // No factors: the library takes them from the sizes.
    PQ_CALL(resampling_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            p.alg, nullptr, tensor(p, "src").desc(), tensor(p, "dst").desc(), attr);
    return created;
}

dnnl_primitive_desc_t prelu(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(prelu_forward_primitive_desc_create, &created, engine(), dnnl_forward_inference,
            tensor(p, "src").desc(), tensor(p, "wei").desc(), tensor(p, "dst").desc(), attr);
    return created;
}

dnnl_primitive_desc_t reorder_desc(const Problem& p, dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(reorder_primitive_desc_create, &created, tensor(p, "src").desc(), engine(),
            tensor(p, "dst").desc(), engine(), attr);
    return created;
}

using Make = dnnl_primitive_desc_t (*)(const Problem&, dnnl_primitive_attr_t);

const std::map<std::string, Make>& makers() {
    static const std::map<std::string, Make> table{
            {"convolution", &convolution},
            {"deconvolution", &deconvolution},
            {"inner_product", &inner_product},
            {"matmul", &matmul},
            {"eltwise", &eltwise},
            {"binary", &binary},
            {"sum", &sum},
            {"softmax", &softmax},
            {"pooling", &pooling},
            {"resampling", &resampling},
            {"prelu", &prelu},
            {"reorder", &reorder_desc},
    };
    return table;
}

template <typename Value>
void read(const py::dict& params, const char* name, Value& value) {
    if (params.contains(name)) value = py::cast<Value>(params[name]);
}

} // namespace

Problem problem_from_python(const py::tuple& boundary, std::string text) {
    Problem problem;
    problem.kind = boundary[0].cast<std::string>();
    problem.text = std::move(text);
    for (const auto& [name, spec] : boundary[1].cast<py::dict>())
        problem.tensors.emplace(name.cast<std::string>(), Layout(tensor_from_python(spec)));
    const auto params = boundary[2].cast<py::dict>();
    read(params, "strides", problem.strides);
    read(params, "dilation", problem.dilation);
    read(params, "padding_lo", problem.padding_lo);
    read(params, "padding_hi", problem.padding_hi);
    read(params, "kernel", problem.kernel);
    read(params, "alpha", problem.alpha);
    read(params, "beta", problem.beta);
    read(params, "axis", problem.axis);
    read(params, "scales", problem.sum_scales);
    if (params.contains("alg"))
        problem.alg = named_alg(problem.kind, py::cast<std::string>(params["alg"]));
    return problem;
}

PrimitiveDesc make_primitive_desc(const Problem& problem, dnnl_primitive_attr_t attr) {
    const auto found = makers().find(problem.kind);
    if (found == makers().end()) {
        throw ArgumentFault("ArgumentError", "kind", "'" + problem.kind + "'",
                            "a primitive this extension binds");
    }
    return PrimitiveDesc(found->second(problem, attr));
}

} // namespace pq
