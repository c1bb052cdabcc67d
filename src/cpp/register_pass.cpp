#include "errors.hpp"
#include "pass.hpp"
#include "rooms.hpp"

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace pq {

namespace {

bool is_signed(const std::string& dtype) {
    if (dtype != "u8" && dtype != "s8")
        throw ArgumentFault("DTypeError", "dtype", dtype, "u8 or s8");
    return dtype == "s8";
}

using CodesOf = std::tuple<float, std::int32_t, std::string>; // scale, zero point, data type

Pass quantize_from_python(std::size_t images, std::size_t channels, std::size_t places,
                          const CodesOf& dst) {
    const auto& [scale, zero_point, dtype] = dst;
    return quantize_pass(images, channels, places, scale, zero_point, is_signed(dtype));
}

Pass mean_from_python(std::size_t images, std::size_t places, std::size_t channels,
                      const CodesOf& src, const CodesOf& dst) {
    const auto codes = [](const CodesOf& of) {
        const auto& [scale, zero_point, dtype] = of;
        return Codes{scale, zero_point, is_signed(dtype)};
    };
    return mean_pass(images, places, channels, codes(src), codes(dst));
}

using Points = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
using AreSigned = std::tuple<bool, bool, bool>;
using Scaled = std::tuple<float, Points, AreSigned>; // the last: which are s8
using Summed = std::tuple<std::tuple<float, float, float>, Points, AreSigned>;

// Zero points and flips of what computes with bytes.
template <typename Arithmetic>
void set_codes(const char* argument, Arithmetic& of, const Points& points,
               const AreSigned& are_signed) {
    const auto [x, g, y] = points;
    const auto [is_x, is_g, is_y] = are_signed;
    of.zero_point = {x, g, y};
    const std::array<bool, 3> is_signed{is_x, is_g, is_y};
    for (std::size_t i = 0; i < is_signed.size(); ++i) {
        of.flip[i] = is_signed[i] ? 0x80 : 0;
        std::int32_t& point = of.zero_point[i];
        const std::string got = std::to_string(point);
        point += of.flip[i];
        if (point < 0 || point > 0xff)
            throw ArgumentFault("ArgumentError", argument, got, "zero points that are codes");
    }
}

Pass lookup_from_python(const py::bytes& table, const Dims& dims, const std::vector<Dims>& strides,
                        const std::optional<Scaled>& scaled, const std::optional<Summed>& summed) {
    const auto entries = static_cast<std::string_view>(table);
    std::optional<Product> product;
    if (scaled) {
        product.emplace().scale = std::get<0>(*scaled);
        set_codes("product", *product, std::get<1>(*scaled), std::get<2>(*scaled));
    }
    std::optional<CodeSum> sum;
    if (summed) {
        const auto [x, g, y] = std::get<0>(*summed);
        sum.emplace().scale = {x, g, y};
        set_codes("sum", *sum, std::get<1>(*summed), std::get<2>(*summed));
    }
    return lookup_pass({entries.begin(), entries.end()}, dims, strides, product, sum);
}

// Length, count, kernel, stride, dilation and padding before.
using Window =
        std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>;

Pass largest_from_python(const std::string& dtype, std::size_t images, std::size_t channels,
                         const std::vector<Window>& dims) {
    std::vector<WindowDim> of;
    for (const auto& [length, count, kernel, stride, dilation, lo] : dims)
        of.push_back({length, count, kernel, stride, dilation, lo});
    return largest_pass(dtype, images, channels, of);
}

} // namespace

void register_pass(py::module_& m) {
    py::class_<Pass>(m, "Pass", "A pass of our own over memory, as a step of a program.")
            .def_readonly("grows", &Pass::grows, "Places of tensors that it writes to beside dst.");
    m.def("quantize_pass", &quantize_from_python, py::arg("images"), py::arg("channels"),
          py::arg("places"), py::arg("dst"), "Codes of float32 values, with channels last.");
    m.def("lookup_pass", &lookup_from_python, py::arg("table"), py::arg("dims"), py::arg("strides"),
          py::arg("product") = py::none(), py::arg("sum") = py::none(),
          "Bytes by a table, of one source or two.");
    m.def("mean_pass", &mean_from_python, py::arg("images"), py::arg("places"), py::arg("channels"),
          py::arg("src"), py::arg("dst"), "Codes of the mean over all places, channels last.");
    m.def("largest_pass", &largest_from_python, py::arg("dtype"), py::arg("images"),
          py::arg("channels"), py::arg("dims"), "The largest of each window, channels last.");
    m.def("layer_norm_pass", &layer_norm_pass, py::arg("rows"), py::arg("epsilon"), py::arg("gain"),
          py::arg("shift"), py::arg("is_centered"),
          "Rows of float32 values normalized, of as many columns as gain.");
    m.def("arithmetic_pass", &arithmetic_pass, py::arg("alg"), py::arg("dims"), py::arg("strides"),
          py::arg("constant"), py::arg("is_first"),
          "Sums, differences, products, quotients or maxima of float32 values.");
    m.def("select_pass", &select_pass, py::arg("dims"), py::arg("strides"), py::arg("known"),
          "One of two float32 values by a byte.");
    m.def("is_nan_pass", &is_nan_pass, py::arg("count"), "Bytes: which float32 values are NaN.");
    m.def(
            "comparison_pass",
            [](const std::string& alg, const std::string& dtype, const Dims& dims,
               const std::vector<Dims>& strides, const py::bytes& constant, bool is_first) {
                return comparison_pass(alg, dtype, dims, strides,
                                       static_cast<std::string>(constant), is_first);
            },
            py::arg("alg"), py::arg("dtype"), py::arg("dims"), py::arg("strides"),
            py::arg("constant"), py::arg("is_first"), "Bytes: where a comparison holds.");
    m.def("conversion_pass", &conversion_pass, py::arg("count"), py::arg("src"), py::arg("dst"),
          "Numbers in another type.");
    m.def("interpolation_pass", &interpolation_pass, py::arg("outer"), py::arg("length"),
          py::arg("inner"), py::arg("index"), py::arg("weights"), py::arg("taps"),
          "Weighted sums of float32 values along a dimension.");
    m.def("reduction_pass", &reduction_pass, py::arg("alg"), py::arg("outer"), py::arg("terms"),
          py::arg("inner"), "Sums, means, products or maxima of float32 values.");
    m.def(
            "pick_pass",
            [](std::size_t count, std::size_t item,
               const py::array_t<std::int64_t, py::array::c_style>& places, const py::bytes& fill) {
                return pick_pass(count, item, {places.data(), places.data() + places.size()},
                                 static_cast<std::string>(fill));
            },
            py::arg("count"), py::arg("item"), py::arg("places").noconvert(), py::arg("fill"),
            "Items by their places.");
    m.def(
            "recurrence_pass",
            [](std::size_t steps, std::size_t batch, std::size_t hidden, bool is_lstm,
               std::vector<bool> is_backward, const py::array_t<float, py::array::c_style>& weights,
               const py::array_t<std::int8_t, py::array::c_style>& codes, std::vector<float> scales,
               std::vector<float> shift, bool has_h, bool has_c) {
                std::vector<float> held(weights.data(), weights.data() + weights.size());
                std::vector<std::int8_t> of_codes(codes.data(), codes.data() + codes.size());
                return recurrence_pass(steps, batch, hidden,
                                       {is_lstm, std::move(is_backward), std::move(held),
                                        std::move(shift), has_h, has_c, std::move(of_codes),
                                        std::move(scales)});
            },
            py::arg("steps"), py::arg("batch"), py::arg("hidden"), py::arg("is_lstm"),
            py::arg("is_backward"), py::arg("weights").noconvert(), py::arg("codes").noconvert(),
            py::arg("scales"), py::arg("shift"), py::arg("has_h"), py::arg("has_c"),
            "Steps of an LSTM or a GRU, of what its source gives to the gates.");
    m.def("rows_pass", &rows_pass, py::arg("count"), py::arg("table").noconvert(),
          py::keep_alive<0, 2>(), "Rows of a table by int64 indices.");
}

} // namespace pq
