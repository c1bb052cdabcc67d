// Requantisers that oneDNN has no attribute for: s32 accumulators to integers, at memory speed.
#pragma once

#include "common.hpp"

#include "requantize_rules.hpp"

namespace pq {

// What crosses the boundary: each vector has one value per channel.
struct RequantizerSpec {
    std::string kind, rounding, dtype;
    std::vector<std::int64_t> multiplier;
    std::vector<std::int32_t> shift, bias, zero_point;
    std::vector<double> factor, then, last, real_bias; // factor: the multiplier as a real number
    std::int32_t lo = 0, hi = 0;
};

class Requantizer {
public:
    explicit Requantizer(RequantizerSpec spec);

    // acc and dst: contiguous, `outer` rows of channels of `inner` values. Throws ArgumentFault
    // when an accumulator leaves 32 bits on the way; dst is unspecified then.
    void run(const std::int32_t* acc, void* dst, std::size_t outer, std::size_t inner) const;

    std::size_t channels() const { return spec_.zero_point.size(); }
    const std::string& dtype() const { return spec_.dtype; }

private:
    // A loop over neighbours: true when an accumulator left 32 bits (for "exact": or must be looked
    // at again).
    using Sweep = bool (*)(const Columns&, const std::int32_t* acc, std::int32_t* out,
                           std::size_t count);

    void fill_tables();
    void choose_loops();
    Columns columns(std::size_t first) const;
    // `uniform`: all of the accumulators belong to channel `column`; otherwise to it and those
    // after.
    void block(bool uniform, std::size_t column, const std::int32_t* acc, std::int32_t* out,
               std::size_t count) const;
    template <typename Out>
    void rows(const std::int32_t* acc, Out* dst, std::size_t outer, std::size_t inner) const;
    std::int32_t exactly(std::int32_t acc, std::size_t channel) const;

    RequantizerSpec spec_;
    std::size_t period_ = 0; // channels, repeated until a loop over them is worth starting
    std::vector<std::int32_t> multiplier_, left_, right_, bias_, zero_point_, lo_, hi_;
    std::vector<float> factor_, then_, last_, real_bias_;
    std::vector<double> real_factor_, power_;
    std::vector<std::uint64_t> divisor_;
    Sweep each_ = nullptr, same_ = nullptr;
};

} // namespace pq
