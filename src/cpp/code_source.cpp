#include "code_source.hpp"

#include "buffer_pool.hpp"
#include "errors.hpp"
#include "parallel.hpp"
#include "quantize.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t map_grain = std::size_t{16} << 10U; // values of a piece for one thread
constexpr std::size_t shift_grain = std::size_t{64} << 10U;
constexpr std::uint8_t sign_bit = 0x80; // without it, 128 more as u8

} // namespace

std::size_t CodeSource::nbytes(Input input, const Dims& dst) const {
    if (!is_dynamic) return 0;
    switch (input) {
    case Input::scale:
        return rows * sizeof(float);
    case Input::zero_point:
        return rows * sizeof(std::int32_t);
    case Input::map: {
        const auto columns = dst.empty() ? 0 : static_cast<std::size_t>(dst.back());
        const auto size = static_cast<std::size_t>(std::accumulate(
                dst.begin(), dst.end(), dnnl_dim_t{1}, std::multiplies<dnnl_dim_t>()));
        const bool fits = columns > 0 && unit.size() == columns && size == rows * columns;
        return fits ? size * sizeof(float) : 0;
    }
    case Input::codes:
    case Input::operand:
        break;
    }
    return 0;
}

// What codes are worth begins with the map, then scale, zero point, least and greatest of each row.
std::size_t CodeSource::place(Input input) const {
    const std::size_t scales = rows * unit.size() * sizeof(float);
    switch (input) {
    case Input::scale:
        return scales;
    case Input::zero_point:
        return scales + rows * sizeof(float);
    case Input::map:
    case Input::codes:
    case Input::operand:
        break;
    }
    return 0;
}

MadeCodes::MadeCodes(const CodeSource& source, const void* values, std::size_t count, void* codes,
                     void* worth)
    : source_(source), values_(values), count_(count), codes_(codes),
      map_(static_cast<float*>(worth)), scales_(map_ + source.rows * source.unit.size()),
      lo_(scales_ + 2 * source.rows), hi_(lo_ + source.rows),
      points_(reinterpret_cast<std::int32_t*>(scales_ + source.rows)) {}

MadeCodes::MadeCodes(const CodeSource& source, const void* values, std::size_t count,
                     AlignedBuffer codes, AlignedBuffer worth)
    : MadeCodes(source, values, count, codes.data(), worth.data()) {
    kept_codes_ = std::move(codes);
    kept_worth_ = std::move(worth);
}

MadeCodes::MadeCodes(const CodeSource& source, const void* values, std::size_t count)
    : MadeCodes(source, values, count, buffer_pool().take(count),
                buffer_pool().take(source.worth_nbytes())) {}

MadeCodes::~MadeCodes() {
    if (kept_codes_) buffer_pool().give_back(std::move(*kept_codes_));
    if (kept_worth_) buffer_pool().give_back(std::move(*kept_worth_));
}

void* MadeCodes::data(CodeSource::Input input) const {
    if (input == CodeSource::Input::codes) return codes_;
    return reinterpret_cast<char*>(map_) + source_.place(input);
}

bool MadeCodes::make() const {
    if (source_.is_s8) {
        shift();
        return true;
    }
    const std::size_t rows = source_.rows;
    const auto* const values = static_cast<const float*>(values_);
    if (source_.is_dynamic) {
        if (!find_scales()) return false;
    } else {
        scales_[0] = source_.scale;
        points_[0] = source_.zero_point;
    }
    const bool all = source_.is_signed ? quantize(values, rows, count_ / rows, scales_, points_,
                                                  static_cast<std::int8_t*>(codes_))
                                       : quantize(values, rows, count_ / rows, scales_, points_,
                                                  static_cast<std::uint8_t*>(codes_));
    if (all && !source_.unit.empty()) fill_map();
    return all;
}

void MadeCodes::shift() const {
    const auto* const from = static_cast<const std::uint8_t*>(values_);
    auto* const to = static_cast<std::uint8_t*>(codes_);
    in_parallel(count_, shift_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            to[i] = static_cast<std::uint8_t>(from[i] ^ sign_bit);
    });
}

bool MadeCodes::find_scales() const {
    const std::size_t rows = source_.rows;
    ranges(static_cast<const float*>(values_), rows, count_ / rows, lo_, hi_);
    for (std::size_t row = 0; row < rows; ++row) {
        std::int32_t& point = points_[row];
        if (!scale_of_range(lo_[row], hi_[row], source_.is_symmetric, scales_[row], point)) {
            return false;
        }
        point += source_.offset;
    }
    return true;
}

void MadeCodes::fill_map() const {
    const std::vector<float>& unit = source_.unit;
    const std::size_t columns = unit.size();
    const std::size_t rows_of_grain = std::max<std::size_t>(map_grain / columns, 1);
    in_parallel(source_.rows, rows_of_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            const auto factor = -static_cast<float>(points_[row]);
            for (std::size_t i = 0; i < columns; ++i)
                map_[row * columns + i] = factor * unit[i];
        }
    });
}

std::pair<Pass, std::vector<std::size_t>> code_pass(CodeSource source, std::size_t count) {
    constexpr std::size_t line = 64;
    const std::size_t begins = (count + line - 1) / line * line;
    const std::size_t extent = begins + source.worth_nbytes();
    std::vector<std::size_t> places;
    using Input = CodeSource::Input;
    for (const Input input : source.inputs) {
        const bool is_worth = input != Input::codes && input != Input::operand;
        places.push_back(is_worth ? begins + source.place(input) : 0);
    }
    places.push_back(extent);
    const auto kept = std::make_shared<const CodeSource>(std::move(source));
    const auto run = [kept, count, begins](char* const* tensors) {
        char* const codes = tensors[1];
        if (!MadeCodes(*kept, tensors[0], count, codes, codes + begins).make())
            throw ArgumentFault("ArgumentError", "src", "values without a range",
                                "finite numbers, of a range that float32 can span");
    };
    return {{{{count * sizeof(float), sizeof(float)}, {extent, line}}, run}, places};
}

} // namespace pq
