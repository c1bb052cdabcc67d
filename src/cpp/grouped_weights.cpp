#include "grouped_weights.hpp"

#include "buffer_pool.hpp"
#include "errors.hpp"
#include "parallel.hpp"
#include "quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t lanes = GroupedTile::lanes;
constexpr std::size_t rows_at_once = 32; // whose sums lie in the nearest cache beside a group
constexpr std::size_t grain = std::size_t{1} << 20U; // products that take some microseconds
constexpr std::uint8_t sign = 0x80;

std::size_t up_to(std::size_t count, std::size_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

// Memory of the pool, handed out piece by piece.
class Room {
public:
    explicit Room(std::size_t nbytes) : buffer_(buffer_pool().take(nbytes)) {}
    ~Room() { buffer_pool().give_back(std::move(buffer_)); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    template <typename Value>
    Value* take(std::size_t count) {
        auto* const place = static_cast<char*>(buffer_.data()) + used_;
        used_ += bytes_of<Value>(count);
        return reinterpret_cast<Value*>(place);
    }

    template <typename Value>
    static std::size_t bytes_of(std::size_t count) {
        constexpr std::size_t line = 64;
        return up_to(count * sizeof(Value), line);
    }

private:
    AlignedBuffer buffer_;
    std::size_t used_ = 0;
};

// Where a code lies in its group of a tile: the byte, and whether in its upper half.
struct Place {
    std::size_t byte;
    bool is_high;
};

Place place_of(std::size_t lane, std::size_t k, bool are_nibbles) {
    constexpr std::size_t quad = 4;
    const std::size_t at = k / quad;
    if (!are_nibbles) return {(at * lanes + lane) * quad + k % quad, false};
    return {(at / 2 * lanes + lane) * quad + k % quad, at % 2 == 1};
}

} // namespace

std::size_t GroupedWeights::codes_of_group() const {
    return up_to(shape_.group, are_nibbles_ ? 8 : 4);
}

std::size_t GroupedWeights::steps() const {
    return codes_of_group() / (are_nibbles_ ? 8 : 4);
}

GroupedWeights::GroupedWeights(const Shape& shape, const std::uint8_t* codes, const float* scales,
                               const std::uint8_t* points, std::vector<float> bias,
                               bool are_nibbles, bool keeps_sums)
    : shape_(shape), are_nibbles_(are_nibbles),
      codes_(up_to(shape.columns, lanes) * shape.groups() * steps() * 4), bias_(std::move(bias)) {
    const std::size_t groups = shape_.groups(), padded = up_to(shape_.columns, lanes);
    const std::size_t nbytes = steps() * lanes * 4; // of a group in a tile
    scales_.resize(padded * groups);
    point_ = points[0];
    const std::size_t count = shape_.columns * groups;
    const bool is_one =
            std::all_of(points, points + count, [&](auto each) { return each == point_; });
    if (!is_one) points_.resize(padded * groups);
    if (keeps_sums) whole_.resize(padded * groups);
    in_parallel(padded / lanes, 1, [&](std::size_t begin, std::size_t end) {
        auto* const to = static_cast<std::uint8_t*>(codes_.data());
        std::memset(to + begin * groups * nbytes, 0, (end - begin) * groups * nbytes);
        for (std::size_t column = begin * lanes; column < std::min(end * lanes, shape_.columns);
             ++column) {
            const std::size_t lane = column % lanes, tile = column / lanes;
            for (std::size_t at = 0; at < groups; ++at) {
                const std::size_t group = tile * groups + at, place = group * lanes + lane;
                const std::uint8_t* const own = codes + column * shape_.inner + at * shape_.group;
                const std::uint8_t point = points[column * groups + at];
                std::int32_t sum = 0;
                for (std::size_t k = 0; k < shape_.group; ++k) {
                    const auto [byte, is_high] = place_of(lane, k, are_nibbles_);
                    std::uint8_t& there = to[group * nbytes + byte];
                    there = static_cast<std::uint8_t>(there | own[k] << (is_high ? 4 : 0));
                    sum += own[k] - point;
                }
                scales_[place] = scales[column * groups + at];
                if (!points_.empty()) points_[place] = point;
                if (keeps_sums) whole_[place] = sum;
            }
        }
    });
}

void GroupedWeights::unpack(std::uint8_t* codes) const {
    const std::size_t groups = shape_.groups(), nbytes = steps() * lanes * 4;
    const auto* const from = static_cast<const std::uint8_t*>(codes_.data());
    in_parallel(shape_.columns, lanes, [&](std::size_t begin, std::size_t end) {
        for (std::size_t column = begin; column < end; ++column) {
            for (std::size_t i = 0; i < shape_.inner; ++i) {
                const std::size_t group = column / lanes * groups + i / shape_.group;
                const auto [byte, is_high] =
                        place_of(column % lanes, i % shape_.group, are_nibbles_);
                const std::uint8_t there = from[group * nbytes + byte];
                const int own = is_high ? there >> 4 : are_nibbles_ ? there & 15 : there;
                codes[column * shape_.inner + i] = static_cast<std::uint8_t>(own);
            }
        }
    });
}

std::size_t GroupedWeights::nbytes() const {
    return codes_.nbytes() + (scales_.size() + bias_.size()) * sizeof(float) + points_.size() +
           whole_.size() * sizeof(std::int32_t);
}

GroupedTile GroupedWeights::tile(std::size_t at) const {
    const std::size_t groups = shape_.groups(), first = at * groups * lanes;
    return {static_cast<const std::uint8_t*>(codes_.data()) + first * steps() * 4,
            scales_.data() + first,
            points_.empty() ? nullptr : points_.data() + first,
            whole_.empty() ? nullptr : whole_.data() + first,
            point_,
            groups,
            steps(),
            are_nibbles_};
}

void GroupedWeights::multiply(const CodeRows& src, float* dst) const {
    static const TileProducts products_of = best_tile_products();
    const std::size_t tiles = up_to(shape_.columns, lanes) / lanes;
    const std::size_t parts = (src.rows + rows_at_once - 1) / rows_at_once;
    const std::size_t size = std::min(src.rows, rows_at_once) * shape_.inner * lanes;
    const float* const scales = src.parts == 1 ? src.scales : nullptr;
    // Rows beside each other in time, which read the same weights.
    in_parallel(tiles * parts, std::max<std::size_t>(grain / size, 1),
                [&](std::size_t begin, std::size_t end) {
                    alignas(64) float values[rows_at_once * lanes];
                    for (std::size_t i = begin; i < end; ++i) {
                        const std::size_t first = i % parts * rows_at_once;
                        const std::size_t last = std::min(first + rows_at_once, src.rows);
                        const std::size_t column = i / parts * lanes;
                        const std::size_t count = std::min(lanes, shape_.columns - column);
                        products_of(tile(i / parts), src, first, last, values);
                        for (std::size_t row = first; row < last; ++row) {
                            const float* const from = values + (row - first) * lanes;
                            float* const to = dst + row * shape_.columns + column;
                            for (std::size_t j = 0; j < count; ++j)
                                to[j] = scales == nullptr ? from[j] : from[j] * scales[row];
                            if (!bias_.empty())
                                for (std::size_t j = 0; j < count; ++j)
                                    to[j] += bias_[column + j];
                        }
                    }
                });
}

void GroupedWeights::multiply(const GivenRows& src, float* dst) const {
    const std::size_t rows = src.rows, groups = shape_.groups(), size = codes_of_group();
    const std::size_t parts = src.parts, worth = rows * parts;
    const std::int32_t offset = src.are_signed ? 0 : sign;
    const bool has_points = std::any_of(src.zero_points, src.zero_points + worth,
                                        [&](auto z) { return z != offset; });
    if (has_points && whole_.empty())
        throw ArgumentFault("ArgumentError", "zero_points", "some", "weights that keep their sums");
    Room room(Room::bytes_of<std::int8_t>(rows * groups * size) +
              Room::bytes_of<std::int32_t>(rows * groups) + Room::bytes_of<std::int32_t>(worth) +
              Room::bytes_of<float>(worth));
    auto* const codes = room.take<std::int8_t>(rows * groups * size);
    auto* const totals = room.take<std::int32_t>(rows * groups);
    auto* const points = room.take<std::int32_t>(worth);
    auto* const scales = room.take<float>(worth);
    const auto* const from = static_cast<const std::uint8_t*>(src.codes);
    const std::uint8_t flip = src.are_signed ? 0 : sign;
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t part = 0; part < parts; ++part) {
            points[part * rows + row] = src.zero_points[row * parts + part] - offset;
            scales[part * rows + row] = src.scales[row * parts + part];
        }
    }
    in_parallel(rows * groups, std::max<std::size_t>((grain >> 4U) / size, 1),
                [&](std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                        const std::size_t row = i / groups, at = i % groups;
                        const std::uint8_t* const own = from + i * shape_.group;
                        std::int8_t* const to = codes + (at * rows + row) * size;
                        std::int32_t total = 0;
                        for (std::size_t k = 0; k < shape_.group; ++k) {
                            to[k] = static_cast<std::int8_t>(own[k] ^ flip);
                            total += to[k];
                        }
                        std::fill(to + shape_.group, to + size, std::int8_t{0});
                        totals[at * rows + row] = total;
                    }
                });
    multiply({rows, codes, totals, has_points ? points : nullptr, scales, parts}, dst);
}

void GroupedWeights::multiply(const float* src, std::size_t rows, const RowRanges& how,
                              float* dst) const {
    if (rows == 0) return;
    const std::size_t parts = how.is_by_group ? shape_.groups() : 1;
    const std::size_t worth = rows * parts, width = shape_.inner / parts;
    const std::size_t count = rows * shape_.inner;
    Room room(Room::bytes_of<std::uint8_t>(count) + 3 * Room::bytes_of<float>(worth) +
              Room::bytes_of<std::int32_t>(worth));
    auto* const codes = room.take<std::uint8_t>(count);
    auto *const lo = room.take<float>(worth), *const hi = room.take<float>(worth);
    auto* const scales = room.take<float>(worth);
    auto* const points = room.take<std::int32_t>(worth);
    ranges(src, worth, width, lo, hi);
    for (std::size_t i = 0; i < worth; ++i) {
        if (scale_of_range(lo[i], hi[i], how.is_symmetric, scales[i], points[i])) continue;
        if (std::isnan(lo[i]))
            throw ArgumentFault("ArgumentError", "src", "values that are not finite",
                                "finite numbers");
        const std::string ends = std::to_string(lo[i]) + " to " + std::to_string(hi[i]);
        throw ArgumentFault("ArgumentError", "src", "values from " + ends,
                            "a range that float32 can span");
    }
    if (how.is_symmetric)
        quantize(src, worth, width, scales, points, reinterpret_cast<std::int8_t*>(codes));
    else
        quantize(src, worth, width, scales, points, codes);
    multiply(GivenRows{rows, codes, how.is_symmetric, scales, points, parts}, dst);
}

} // namespace pq
