#include "errors.hpp"
#include "index_space.hpp"
#include "parallel.hpp"
#include "pass.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t grain = std::size_t{4} << 10U; // elements of a piece for one thread

struct Bool {
    std::uint8_t value;
};

struct Equal {
    template <typename T>
    static bool of(T a, T b) {
        return a == b;
    }
};
struct Less {
    template <typename T>
    static bool of(T a, T b) {
        return a < b;
    }
};
struct LessOrEqual {
    template <typename T>
    static bool of(T a, T b) {
        return a <= b;
    }
};

using Row = void (*)(const char* a, dnnl_dim_t by_a, const char* b, dnnl_dim_t by_b,
                     std::uint8_t* y, dnnl_dim_t by_y, std::size_t count);

template <typename T, typename Alg>
void row_of(const char* first, dnnl_dim_t by_a, const char* second, dnnl_dim_t by_b,
            std::uint8_t* y, dnnl_dim_t by_y, std::size_t count) {
    const auto* a = reinterpret_cast<const T*>(first);
    const auto* b = reinterpret_cast<const T*>(second);
    if (by_y == 1 && by_a == 0 && by_b == 1) { // an index of many
        const T same = *a;
        for (std::size_t i = 0; i < count; ++i)
            y[i] = Alg::of(same, b[i]);
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        *y = Alg::of(*a, *b);
        a += by_a;
        b += by_b;
        y += by_y;
    }
}

template <typename T>
Row row_by(const std::string& alg) {
    if (alg == "equal") return &row_of<T, Equal>;
    if (alg == "less") return &row_of<T, Less>;
    if (alg == "less_or_equal") return &row_of<T, LessOrEqual>;
    throw ArgumentFault("ArgumentError", "alg", alg, "equal, less or less_or_equal");
}

std::size_t bytes_of(const char* argument, const std::string& dtype) {
    if (dtype == "bool" || dtype == "u8" || dtype == "s8") return 1;
    if (dtype == "s32" || dtype == "f32") return 4;
    if (dtype == "s64") return 8;
    throw ArgumentFault("DTypeError", argument, dtype, "bool, u8, s8, s32, s64 or f32");
}

Row row_by(const std::string& alg, const std::string& dtype) {
    if (dtype == "f32") return row_by<float>(alg);
    if (dtype == "s32") return row_by<std::int32_t>(alg);
    if (dtype == "s64") return row_by<std::int64_t>(alg);
    throw ArgumentFault("DTypeError", "dtype", dtype, "s32, s64 or f32");
}

// Of floats beyond what integers hold, and of NaN, the least: what processors make of them.
template <typename From, typename To>
To converted(From x) {
    if constexpr (std::is_same_v<From, Bool>) {
        return converted<std::uint8_t, To>(x.value != 0 ? 1 : 0);
    } else if constexpr (std::is_same_v<To, Bool>) {
        return {static_cast<std::uint8_t>(x != 0)};
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        // Through the widest integer, which wraps to narrow ones.
        const double limit = 9223372036854775808.0;
        const double wide = static_cast<double>(x);
        constexpr bool is_wide = sizeof(To) == sizeof(std::int64_t);
        const double most = is_wide ? limit : 2147483648.0;
        if (!(wide >= -most && wide < most))
            return static_cast<To>(is_wide ? std::numeric_limits<std::int64_t>::min()
                                           : std::numeric_limits<std::int32_t>::min());
        return static_cast<To>(static_cast<std::int64_t>(wide));
    } else {
        return static_cast<To>(x);
    }
}

using Convert = void (*)(const char* src, char* dst, std::size_t count);

template <typename From, typename To>
void convert(const char* src, char* dst, std::size_t count) {
    const auto* const x = reinterpret_cast<const From*>(src);
    auto* const y = reinterpret_cast<To*>(dst);
    for (std::size_t i = 0; i < count; ++i)
        y[i] = converted<From, To>(x[i]);
}

template <typename From>
Convert convert_to(const std::string& dtype) {
    if (dtype == "bool") return &convert<From, Bool>;
    if (dtype == "u8") return &convert<From, std::uint8_t>;
    if (dtype == "s8") return &convert<From, std::int8_t>;
    if (dtype == "s32") return &convert<From, std::int32_t>;
    if (dtype == "s64") return &convert<From, std::int64_t>;
    return &convert<From, float>;
}

Convert convert_by(const std::string& src, const std::string& dst) {
    if (src == "bool") return convert_to<Bool>(dst);
    if (src == "u8") return convert_to<std::uint8_t>(dst);
    if (src == "s8") return convert_to<std::int8_t>(dst);
    if (src == "s32") return convert_to<std::int32_t>(dst);
    if (src == "s64") return convert_to<std::int64_t>(dst);
    return convert_to<float>(dst);
}

} // namespace

Pass comparison_pass(const std::string& alg, const std::string& dtype, const Dims& dims,
                     const std::vector<Dims>& strides, std::string constant, bool is_first) {
    const Row row = row_by(alg, dtype);
    const std::size_t item = bytes_of("dtype", dtype);
    check_space(dims, strides, 3);
    check_apart(dims, strides[2]);
    const std::size_t known = constant.empty() ? 2 : is_first ? 0 : 1; // the place of the constant
    Pass pass;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t extent = reach_of(dims, strides[i], 8 * item);
        if (i != known)
            pass.tensors.push_back({extent, item});
        else if (extent != constant.size())
            throw ArgumentFault("ShapeError", "constant", std::to_string(constant.size()),
                                std::to_string(extent) + " bytes, as strides reach");
    }
    pass.tensors.push_back({reach_of(dims, strides[2], 8), 1});
    const auto values = std::make_shared<const std::string>(std::move(constant));
    pass.run = [=, rows = rows_of(dims, strides)](char* const* tensors) {
        const char* srcs[2] = {values->data(), values->data()};
        std::size_t next = 0;
        for (std::size_t i = 0; i < 2; ++i)
            if (i != known) srcs[i] = tensors[next++];
        auto* const dst = reinterpret_cast<std::uint8_t*>(tensors[next]);
        const std::size_t inner = rows.inner();
        const auto by = [&](std::size_t i) { return rows.strides[i].back(); };
        const auto bytes = static_cast<dnnl_dim_t>(item);
        in_parallel(rows.size(), grain, [&](std::size_t begin, std::size_t end) {
            Walk walk(rows, begin / inner);
            for (std::size_t i = begin; i < end; walk.next()) {
                const auto at = static_cast<dnnl_dim_t>(i % inner);
                const std::size_t count = std::min(inner - i % inner, end - i);
                row(srcs[0] + bytes * (walk.offset(0) + at * by(0)), by(0),
                    srcs[1] + bytes * (walk.offset(1) + at * by(1)), by(1),
                    dst + walk.offset(2) + at * by(2), by(2), count);
                i += count;
            }
        });
    };
    return pass;
}

Pass conversion_pass(std::size_t count, const std::string& src, const std::string& dst) {
    const std::size_t from = bytes_of("src", src), to = bytes_of("dst", dst);
    const Convert some = convert_by(src, dst);
    const std::size_t read = bytes_of_floats("count", count, from) / sizeof(float);
    const std::size_t written = bytes_of_floats("count", count, to) / sizeof(float);
    const auto run = [=](char* const* tensors) {
        in_parallel(count, grain, [&](std::size_t begin, std::size_t end) {
            some(tensors[0] + from * begin, tensors[1] + to * begin, end - begin);
        });
    };
    return {{{read, from}, {written, to}}, run};
}

} // namespace pq
