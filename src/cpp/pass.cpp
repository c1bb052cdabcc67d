#include "pass.hpp"

#include "errors.hpp"
#include "index_space.hpp"
#include "lookup.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

namespace pq {

namespace {

constexpr std::size_t bytes_of_table = 256;
constexpr std::size_t grain = std::size_t{16} << 10U; // bytes of a piece for one thread
constexpr std::size_t gates_at_once = 2048;

// What a row does: of one source or two.
class Table {
public:
    Table(std::vector<std::uint8_t> entries, const std::optional<Product>& product,
          const std::optional<CodeSum>& sum)
        : entries_(std::move(entries)), product_(product), sum_(sum), look_up_(best_lookup()) {
        for (std::size_t i = 0; i < bytes_of_table; ++i)
            is_copy_ = is_copy_ && entries_[i] == i;
        is_copy_ = is_copy_ && entries_.size() == bytes_of_table;
    }

    void row(const std::uint8_t* x, dnnl_dim_t step, std::uint8_t* y, dnnl_dim_t dst_step,
             std::size_t count) const {
        row(entries_.data(), x, step, y, dst_step, count);
    }

    void row(const std::uint8_t* first, dnnl_dim_t first_step, const std::uint8_t* second,
             dnnl_dim_t second_step, std::uint8_t* y, dnnl_dim_t dst_step,
             std::size_t count) const {
        if (first_step == 0) {
            const std::uint8_t* const part = entries_.data() + bytes_of_table * *first;
            return row(part, second, second_step, y, dst_step, count);
        }
        const std::uint8_t* const table = entries_.data();
        if (sum_ && first_step == 1 && second_step == 1 && dst_step == 1)
            return add_codes(*sum_, first, second, y, count);
        if (product_ && first_step == 1 && second_step == 1 && dst_step == 1) {
            constexpr std::size_t most = 256;
            float factors[most];
            for (std::size_t i = 0; i < count; i += most) {
                const std::size_t part = std::min(count - i, most);
                for (std::size_t j = 0; j < part; ++j)
                    factors[j] = product_->factor(second[i + j]);
                multiply_codes(*product_, first + i, factors, y + i, part);
            }
            return;
        }
        if (second_step == 0 && count >= worth_a_column) {
            std::uint8_t column[bytes_of_table];
            for (std::size_t i = 0; i < bytes_of_table; ++i)
                column[i] = table[bytes_of_table * i + *second];
            return row(column, first, first_step, y, dst_step, count);
        }
        for (std::size_t i = 0; i < count; ++i) {
            *y = table[bytes_of_table * *first + *second];
            first += first_step;
            second += second_step;
            y += dst_step;
        }
    }

    const std::optional<Product>& product() const { return product_; }

private:
    void row(const std::uint8_t* table, const std::uint8_t* x, dnnl_dim_t step, std::uint8_t* y,
             dnnl_dim_t dst_step, std::size_t count) const {
        if (dst_step == 1 && step == 0) {
            std::memset(y, table[*x], count);
        } else if (dst_step == 1 && step == 1 && is_copy_) {
            std::memcpy(y, x, count);
        } else if (dst_step == 1 && step == 1) {
            look_up_(table, x, y, count);
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                *y = table[*x];
                x += step;
                y += dst_step;
            }
        }
    }

    // Of a table of two, for one code of the second: 256 reads from as many lines of the cache.
    static constexpr std::size_t worth_a_column = 2048;

    std::vector<std::uint8_t> entries_;
    std::optional<Product> product_;
    std::optional<CodeSum> sum_;
    Lookup look_up_;
    bool is_copy_ = true;
};

void check_table(std::size_t tensors, std::size_t entries) {
    const bool is_one = tensors == 2 && entries == bytes_of_table;
    const bool is_two = tensors == 3 && entries == bytes_of_table * bytes_of_table;
    if (!is_one && !is_two)
        throw ArgumentFault("ShapeError", "table", std::to_string(entries), "256, 65536 of two");
}

// Whether rows without gaps meet one row of the second source, as pixels meet the gates of their
// channels; and so few gates that some rows of them fit into a cache.
bool meets_gates(const Rows& rows) {
    const std::size_t rank = rows.dims.size();
    if (rank < 2 || rows.strides.size() != 3 || rows.inner() > gates_at_once) return false;
    const auto is = [&](std::size_t tensor, dnnl_dim_t outer, dnnl_dim_t inner) {
        const Dims& strides = rows.strides[tensor];
        return strides[rank - 2] == outer && strides[rank - 1] == inner;
    };
    return is(0, rows.dims[rank - 1], 1) && is(1, 0, 1) && is(2, rows.dims[rank - 1], 1);
}

void run_gates(const Product& product, const Rows& rows, char* const* tensors) {
    const auto outer = rows.dims.end() - 2;
    const auto height = static_cast<std::size_t>(*outer);
    const std::size_t width = rows.inner(), of_all = rows.size() / (height * width);
    Rows images{{rows.dims.begin(), outer}, {}};
    for (const Dims& strides : rows.strides)
        images.strides.emplace_back(strides.begin(), strides.end() - 2);
    images.dims.push_back(1); // what Walk leaves out
    // As many rows of gates side by side as there is room for, so that short rows are no loops.
    const std::size_t together = gates_at_once / width;
    in_parallel(of_all * height, std::max(grain / width, together),
                [&](std::size_t begin, std::size_t end) {
                    float factors[gates_at_once];
                    Walk walk(images, begin / height);
                    for (std::size_t i = begin; i < end; walk.next()) {
                        const std::size_t first = i % height,
                                          count = std::min(height - first, end - i);
                        const auto* const gates =
                                reinterpret_cast<const std::uint8_t*>(tensors[1]) + walk.offset(1);
                        for (std::size_t j = 0; j < together * width; ++j)
                            factors[j] = product.factor(gates[j % width]);
                        const auto* const x = reinterpret_cast<const std::uint8_t*>(tensors[0]) +
                                              walk.offset(0) + first * width;
                        auto* const y = reinterpret_cast<std::uint8_t*>(tensors[2]) +
                                        walk.offset(2) + first * width;
                        for (std::size_t j = 0; j < count; j += together) {
                            const std::size_t size = std::min(together, count - j) * width;
                            multiply_codes(product, x + j * width, factors, y + j * width, size);
                        }
                        i += count;
                    }
                });
}

void run_lookup(const Table& table, const Rows& rows, char* const* tensors) {
    if (table.product() && meets_gates(rows)) return run_gates(*table.product(), rows, tensors);
    const bool is_of_two = rows.strides.size() == 3;
    const auto* const first = reinterpret_cast<const std::uint8_t*>(tensors[0]);
    const auto* const second = reinterpret_cast<const std::uint8_t*>(tensors[is_of_two ? 1 : 0]);
    auto* const dst = reinterpret_cast<std::uint8_t*>(tensors[is_of_two ? 2 : 1]);
    const std::size_t inner = rows.inner();
    const dnnl_dim_t by_first = rows.strides.front().back();
    const dnnl_dim_t by_second = rows.strides[is_of_two ? 1 : 0].back();
    const dnnl_dim_t by_dst = rows.strides.back().back();
    in_parallel(rows.size(), grain, [&](std::size_t begin, std::size_t end) {
        Walk walk(rows, begin / inner);
        for (std::size_t i = begin; i < end; walk.next()) {
            const auto at = static_cast<dnnl_dim_t>(i % inner);
            const std::size_t count = std::min(inner - i % inner, end - i);
            const std::uint8_t* const x = first + walk.offset(0) + at * by_first;
            std::uint8_t* const y = dst + walk.offset(rows.strides.size() - 1) + at * by_dst;
            if (is_of_two) {
                const std::uint8_t* const other = second + walk.offset(1) + at * by_second;
                table.row(x, by_first, other, by_second, y, by_dst, count);
            } else {
                table.row(x, by_first, y, by_dst, count);
            }
            i += count;
        }
    });
}

} // namespace

std::size_t bytes_of_floats(const char* argument, std::size_t rows, std::size_t columns) {
    constexpr std::size_t most = PTRDIFF_MAX / sizeof(float);
    if (rows == 0 || columns == 0 || rows > most / columns) {
        throw ArgumentFault("ShapeError", argument, std::to_string(rows),
                            "1 to " + std::to_string(columns == 0 ? 0 : most / columns));
    }
    return rows * columns * sizeof(float);
}

Pass quantize_pass(std::size_t images, std::size_t channels, std::size_t places, float scale,
                   std::int32_t zero_point, bool is_signed) {
    const int qmin = is_signed ? -128 : 0;
    if (!(scale > 0) || !std::isfinite(scale))
        throw ArgumentFault("ArgumentError", "scale", std::to_string(scale), "positive, finite");
    if (zero_point < qmin || zero_point > qmin + 255)
        throw ArgumentFault("ArgumentError", "zero_point", std::to_string(zero_point), "a code");
    if (channels < 1 || channels > most_interleaved) {
        throw ArgumentFault("ShapeError", "channels", std::to_string(channels),
                            "1 to " + std::to_string(most_interleaved));
    }
    const std::size_t size = bytes_of_floats("places", places, channels) / sizeof(float);
    const std::size_t extent = bytes_of_floats("images", images, size);
    const std::size_t count = images * size;
    const auto run = [=](char* const* tensors) {
        const auto* const values = reinterpret_cast<const float*>(tensors[0]);
        const auto convert = [&](auto* codes) {
            if (channels == 1) return quantize(values, 1, count, &scale, &zero_point, codes);
            return quantize_last(values, images, channels, places, scale, zero_point, codes);
        };
        const bool all_numbers = is_signed ? convert(reinterpret_cast<std::int8_t*>(tensors[1]))
                                           : convert(reinterpret_cast<std::uint8_t*>(tensors[1]));
        if (!all_numbers) throw ArgumentFault("ArgumentError", "src", "NaN", "numbers");
    };
    return {{{extent, sizeof(float)}, {count, 1}}, run};
}

Pass lookup_pass(std::vector<std::uint8_t> table, const Dims& dims,
                 const std::vector<Dims>& strides, const std::optional<Product>& product,
                 const std::optional<CodeSum>& sum) {
    check_table(strides.size(), table.size());
    check_space(dims, strides, strides.size());
    Pass pass;
    for (const Dims& each : strides)
        pass.tensors.push_back({reach_of(dims, each, 8), 1});
    check_apart(dims, strides.back());
    const auto entries = std::make_shared<const Table>(std::move(table), product, sum);
    pass.run = [entries, rows = rows_of(dims, strides)](char* const* tensors) {
        run_lookup(*entries, rows, tensors);
    };
    return pass;
}

} // namespace pq
