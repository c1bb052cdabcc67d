#include "sampled_sums.hpp"

#include "errors.hpp"
#include "gil.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace pq {

namespace {

using Offsets = py::array_t<std::int64_t, py::array::c_style>;
using Sums = py::array_t<double, py::array::c_style>;

constexpr std::int64_t outside = std::numeric_limits<std::int64_t>::min();
// Products of differences of codes of 8 bits are below 2^16: so many fit 31 bits.
constexpr std::int64_t chunk = 1 << 14;
constexpr std::int64_t rows = 64; // of a block while columns are gathered

// Elements of an array, as offsets from its first one.
struct Reach {
    std::int64_t least = 0, most = 0;

    explicit Reach(const py::array& array) {
        for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
            const std::int64_t way =
                    (array.shape(axis) - 1) * (array.strides(axis) / array.itemsize());
            (way < 0 ? least : most) += way;
        }
    }

    bool holds(std::int64_t at, std::int64_t way) const {
        return std::min(at, at + way) >= least && std::max(at, at + way) <= most;
    }
};

// What is multiplied: term (i, t) of place p is src[src_at[p][t] + i * src_step], and of channel
// slot s wei[wei_at[s] + taps[t] + i * wei_step].
struct Walk {
    std::int64_t places, tap_count, inner, slots;
    const std::int64_t *src_at, *taps, *wei_at;
    std::int64_t src_step, wei_step;

    std::int64_t terms() const { return tap_count * inner; }

    // Whether weights of a channel lie behind each other in the order of terms.
    bool is_plain() const {
        if (wei_step != tap_count && inner > 1) return false;
        for (std::int64_t tap = 0; tap < tap_count; ++tap)
            if (taps[tap] != tap) return false;
        return true;
    }
};

template <typename Src, typename Wide>
void gather_patch(const Walk& walk, std::int64_t place, const Src* src, Wide point, Wide* patch) {
    for (std::int64_t tap = 0; tap < walk.tap_count; ++tap) {
        const std::int64_t at = walk.src_at[place * walk.tap_count + tap];
        Wide* to = patch + tap;
        if (at == outside) {
            for (std::int64_t i = 0; i < walk.inner; ++i)
                to[i * walk.tap_count] = 0;
        } else {
            const Src* from = src + at;
            for (std::int64_t i = 0; i < walk.inner; ++i)
                to[i * walk.tap_count] =
                        static_cast<Wide>(static_cast<Wide>(from[i * walk.src_step]) - point);
        }
    }
}

// Weights of all slots, in the order of terms: blocks of few rows, so that rows far apart are read
// column by column while their pages are at hand.
template <typename Wei>
std::vector<Wei> gather_wei(const Walk& walk, const Wei* wei) {
    const std::int64_t terms = walk.terms();
    std::vector<Wei> all(static_cast<std::size_t>(walk.slots * terms));
    for (std::int64_t begin = 0; begin < walk.inner; begin += rows) {
        const std::int64_t end = std::min(begin + rows, walk.inner);
        for (std::int64_t slot = 0; slot < walk.slots; ++slot) {
            const Wei* from = wei + walk.wei_at[slot];
            Wei* to = all.data() + slot * terms;
            for (std::int64_t i = begin; i < end; ++i)
                for (std::int64_t tap = 0; tap < walk.tap_count; ++tap)
                    to[i * walk.tap_count + tap] = from[walk.taps[tap] + i * walk.wei_step];
        }
    }
    return all;
}

template <typename Wei>
double dot(const std::int16_t* patch, const Wei* wei, std::int32_t point, std::int64_t terms) {
    std::int64_t sum = 0;
    for (std::int64_t begin = 0; begin < terms; begin += chunk) {
        const std::int64_t end = std::min(begin + chunk, terms);
        std::int32_t part = 0;
        for (std::int64_t i = begin; i < end; ++i)
            part += static_cast<std::int32_t>(patch[i]) * static_cast<std::int16_t>(wei[i] - point);
        sum += part;
    }
    return static_cast<double>(sum);
}

template <typename Wide, typename Wei>
double dot_of_sizes(const Wide* patch, const Wei* wei, double point, std::int64_t terms) {
    double sum = 0;
    for (std::int64_t i = 0; i < terms; ++i)
        sum += std::fabs(static_cast<double>(patch[i]) * (static_cast<double>(wei[i]) - point));
    return sum;
}

double dot(const double* patch, const float* wei, double point, std::int64_t terms) {
    double sum = 0;
    for (std::int64_t i = 0; i < terms; ++i)
        sum += patch[i] * (static_cast<double>(wei[i]) - point);
    return sum;
}

template <typename Src, typename Wei>
void run(const Walk& walk, const void* src, const void* wei, std::int32_t src_point,
         std::int32_t wei_point, double* sums, double* sizes) {
    using Wide = std::conditional_t<std::is_floating_point_v<Src>, double, std::int16_t>;
    const std::int64_t terms = walk.terms();
    const auto* weights = static_cast<const Wei*>(wei);
    const bool plain = walk.is_plain();
    const std::vector<Wei> gathered = plain ? std::vector<Wei>() : gather_wei(walk, weights);
    std::vector<Wide> patch(static_cast<std::size_t>(terms));
    const std::int64_t each = walk.slots / walk.places;
    for (std::int64_t slot = 0; slot < walk.slots; ++slot) {
        if (slot % each == 0) {
            gather_patch(walk, slot / each, static_cast<const Src*>(src),
                         static_cast<Wide>(src_point), patch.data());
        }
        const Wei* row = plain ? weights + walk.wei_at[slot] : gathered.data() + slot * terms;
        sums[slot] = dot(patch.data(), row, wei_point, terms);
        if (sizes != nullptr) sizes[slot] = dot_of_sizes(patch.data(), row, wei_point, terms);
    }
}

[[noreturn]] void refuse(const char* argument, const std::string& got, const char* wanted) {
    throw ArgumentFault("ShapeError", argument, got, wanted);
}

void check(const Walk& walk, const py::array& src, const py::array& wei) {
    const Reach of_src(src), of_wei(wei);
    const std::int64_t src_way = (walk.inner - 1) * walk.src_step;
    const std::int64_t wei_way = (walk.inner - 1) * walk.wei_step;
    for (std::int64_t i = 0; i < walk.places * walk.tap_count; ++i)
        if (walk.src_at[i] != outside && !of_src.holds(walk.src_at[i], src_way))
            refuse("src_at", std::to_string(walk.src_at[i]), "elements of src");
    for (std::int64_t slot = 0; slot < walk.slots; ++slot)
        for (std::int64_t tap = 0; tap < walk.tap_count; ++tap)
            if (!of_wei.holds(walk.wei_at[slot] + walk.taps[tap], wei_way))
                refuse("wei_at", std::to_string(walk.wei_at[slot]), "elements of wei");
}

using Run = void (*)(const Walk&, const void*, const void*, std::int32_t, std::int32_t, double*,
                     double*);

Run run_for(const py::array& src, const py::array& wei) {
    const auto type = [](const py::array& array) {
        return std::string(1, array.dtype().kind()) + std::to_string(array.itemsize());
    };
    const std::string types = type(src) + type(wei);
    if (types == "u1i1") return &run<std::uint8_t, std::int8_t>;
    if (types == "i1i1") return &run<std::int8_t, std::int8_t>;
    if (types == "u1u1") return &run<std::uint8_t, std::uint8_t>;
    if (types == "i1u1") return &run<std::int8_t, std::uint8_t>;
    if (types == "f4f4") return &run<float, float>;
    throw ArgumentFault("DTypeError", "src", types, "8 bits, or float32 both");
}

// In which of one dimension each: places, taps, slots. `sizes` takes the sums of absolute products,
// or has no element.
void sampled_sums(const py::array& src, const py::array& wei, const Offsets& src_at,
                  const Offsets& taps, const Offsets& wei_at, std::int64_t inner,
                  std::int64_t src_step, std::int64_t wei_step, std::int32_t src_point,
                  std::int32_t wei_point, Sums sums, Sums sizes) {
    const Run run = run_for(src, wei);
    const std::int64_t tap_count = taps.size(), slots = wei_at.size();
    if (tap_count == 0 || src_at.size() == 0 || src_at.size() % tap_count != 0)
        refuse("src_at", std::to_string(src_at.size()), "one for each place and tap");
    const Walk walk{src_at.size() / tap_count,
                    tap_count,
                    inner,
                    slots,
                    src_at.data(),
                    taps.data(),
                    wei_at.data(),
                    src_step,
                    wei_step};
    if (slots == 0 || slots % walk.places != 0 || sums.size() != slots)
        refuse("wei_at", std::to_string(slots), "as many for each place, and as many sums");
    if (sizes.size() != 0 && sizes.size() != slots)
        refuse("sizes", std::to_string(sizes.size()), "none, or one for each sum");
    if (inner < 1) refuse("inner", std::to_string(inner), "at least 1");
    // Differences of codes and points are held in 16 bits.
    if (std::abs(src_point) > 255 || std::abs(wei_point) > 255)
        throw ArgumentFault("ArgumentError", "src_point", "beyond codes of 8 bits", "-255 to 255");
    check(walk, src, wei);
    double* const to = sums.mutable_data();
    double* const to_sizes = sizes.size() == 0 ? nullptr : sizes.mutable_data();
    const GilReleased released;
    run(walk, src.data(), wei.data(), src_point, wei_point, to, to_sizes);
}

} // namespace

void register_sampled_sums(py::module_& m) {
    m.def("sampled_sums", &sampled_sums, py::arg("src"), py::arg("wei"), py::arg("src_at"),
          py::arg("taps"), py::arg("wei_at"), py::kw_only(), py::arg("inner"), py::arg("src_step"),
          py::arg("wei_step"), py::arg("src_point"), py::arg("wei_point"),
          py::arg("sums").noconvert(), py::arg("sizes").noconvert(),
          "Writes exact sums of (src - src_point) * (wei - wei_point) of some places and "
          "channels.");
}

} // namespace pq
